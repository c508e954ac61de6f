package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
)

// auditLog is a directory with a log of four records: two calls, an approval of a plugin and a checkpoint.
func auditLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("{}\n"))
	path := filepath.Join(dir, "hako.store", "audit")
	put(t, filepath.Join(path, "audit.key"), []byte("AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=\n"))
	put(t, filepath.Join(path, "audit.pub"), []byte("ed25519:ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=\n"))
	now := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	l := must(audit.Open(&audit.Options{Dir: path, Now: func() time.Time { return now }}))
	for i, event := range []audit.Event{
		{Type: audit.TypeCall, Outcome: "ok", Subject: audit.Subject{Frontend: "mcp-http", User: "aki", Tenant: "acme"},
			DurationMS: 1.5,
			Target:     audit.Target{Plugin: "files", Name: "file_read"},
			Arguments:  json.RawMessage(`{"digest":"hmac-sha256:00","path":"a.txt"}`),
			Call:       "call_1", HTTPRequestID: "web-1", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
		{Type: audit.TypeCall, Outcome: "not_allowed", Subject: audit.Subject{Frontend: "terminal", User: "bo\x1b[2J"},
			Target: audit.Target{Plugin: "shell", Name: "shell_exec"}, Decision: &audit.Decision{Action: "deny",
				Rule: "no shell"}, Approval: &audit.Approval{ID: "apr_1", By: "mori", Answer: "no"}},
		{Type: audit.TypeOperator, Action: "plugin.approve", Outcome: "ok", Subject: audit.Subject{User: "root"},
			Target: audit.Target{Plugin: "files"}},
	} {
		event.Time = now.Add(time.Duration(i) * time.Hour)
		if err := l.Append(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAuditQuery(t *testing.T) {
	t.Parallel()
	dir := auditLog(t)
	const (
		heading = "TIME (UTC)           RECORD  WHO                       WHAT                            OUTCOME            TOOK  MORE\n"
		first   = "2026-11-20 01:02:03       1  aki of acme (mcp-http)    files/file_read                 ok                1.5ms  path=\"a.txt\"\n"
		second  = "2026-11-20 02:02:03       2  bo\\u001b[2J (terminal)    shell/shell_exec                not_allowed              deny by rule \"no shell\"; asked: no mori\n"
		third   = "2026-11-20 03:02:03       3  root                      plugin.approve files            ok\n"
	)
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"all", nil, heading + first + second + third},
		{"a tool", []string{"--tool", "file_read"}, heading + first},
		{"a plugin", []string{"--plugin", "shell"}, heading + second},
		{"a user", []string{"--user", "aki", "--tenant", "acme"}, heading + first},
		{"an outcome", []string{"--outcome", "not_allowed"}, heading + second},
		{"a call", []string{"--id", "call_1"}, heading + first},
		{"an HTTP request", []string{"--id", "web-1"}, heading + first},
		{"a trace", []string{"--id", "4bf92f3577b34da6a3ce929d0e0e4736"}, heading + first},
		{"a question", []string{"--id", "apr_1"}, heading + second},
		{"an unknown ID", []string{"--id", "call"}, ""},
		{"a type", []string{"--type", "operator"}, heading + third},
		{"a time", []string{"--since", "2026-11-20T10:30:00+09:00", "--until", "2026-11-20T02:30:00Z"},
			heading + second},
		{"nothing", []string{"--since", "2026-11-20T10:30:00Z"}, ""},
		{"the newest", nil, ""},
	} {
		args := append([]string{"audit", "query", "--utc"}, test.args...)
		if test.name == "the newest" {
			args, test.want = []string{"audit", "tail", "-n", "1", "--utc"}, heading+third
		}
		if o := invoke(t, dir, args...); o.code != exitOK || o.stdout != test.want {
			t.Errorf("%s: %s\nwant\n%s", test.name, o, test.want)
		}
	}
	for approver, want := range map[string]string{"mori": heading + second, "root": ""} {
		if o := invoke(t, dir, "approvals", "history", "--utc", "--approver", approver); o.stdout != want {
			t.Errorf("answered by %s: %s", approver, o)
		}
	}
	invoke(t, dir, "approvals", "history", "--utc").want(t, exitOK, second)
	invoke(t, dir, "audit", "query", "--since", "yesterday").want(t, exitUsage, "--since", "is not a time: write it like")
	invoke(t, t.TempDir(), "audit", "tail").want(t, exitUsage, "there is no audit log in")
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	dir := auditLog(t)
	log := filepath.Join(dir, "hako.store", "audit")
	o := invoke(t, dir, "audit", "verify")
	o.want(t, exitOK, "4 records in 1 segment, from 1 to 4", "All are signed, with ed25519:ebVW", "The log is intact",
		"--expect 4:")
	head := strings.TrimSpace(o.stdout[strings.Index(o.stdout, "--expect ")+len("--expect "):])
	invoke(t, dir, "audit", "verify", "--expect", head).want(t, exitOK)
	invoke(t, dir, "audit", "verify", "--expect", "3"+head[1:]).want(t, exitFailed,
		"it differs from the expected record")
	invoke(t, dir, "audit", "verify", "--expect", "4:abc").want(t, exitUsage, "NUMBER:HASH")
	put(t, filepath.Join(dir, "other.pub"), []byte("ed25519:AAAALo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=\n"))
	invoke(t, dir, "audit", "verify", "--key", "other.pub").want(t, exitFailed, "the log's key is not the one expected")

	// A copy elsewhere has no private key.
	if err := os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(log)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "copy", "audit.key")); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "audit", "verify", "copy").want(t, exitOK,
		"No sign of a change up to record 4. Whether later records are missing is not known")
	invoke(t, dir, "audit", "verify", "copy", "--expect", head).want(t, exitOK, "The log is intact")
	invoke(t, dir, "audit", "tail", "--dir", "copy").want(t, exitOK, "plugin.approve files")

	segment := filepath.Join(log, "audit-00000001.jsonl")
	text := must(os.ReadFile(segment))
	put(t, segment, bytes.Replace(text, []byte(`"aki"`), []byte(`"eve"`), 1))
	invoke(t, dir, "audit", "verify").want(t, exitFailed, "THE LOG FAILED VERIFICATION",
		"audit-00000001.jsonl:1: record 1: it was changed")
	var report auditVerification
	o = invoke(t, dir, "audit", "verify", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || o.code != exitFailed || report.OK ||
		len(report.Problems) != 1 || report.Problems[0].Seq != 1 || !report.EndChecked {
		t.Errorf("%s: %+v, %v", o, report, err)
	}
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	dir := auditLog(t)
	if o := invoke(t, dir, "audit", "export"); o.stdout != string(
		must(os.ReadFile(filepath.Join(dir, "hako.store", "audit", "audit-00000001.jsonl"))),
	) {
		t.Errorf("not as it stands in the log: %s", o)
	}
	invoke(t, dir, "audit", "export", "--format", "ocsf", "--tool", "file_read").want(t, exitOK, `"class_uid":6003`,
		`"aki"`)
	invoke(t, dir, "audit", "export", "--format", "cef", "--type", "operator").want(t, exitOK, "plugin.approve",
		"suser=root")
	invoke(t, dir, "audit", "export", "--format", "xml").want(t, exitUsage, "use jsonl, ocsf or cef")
}

// TestAuditFollow: records are shown as they come, over the end of a segment.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	dir := auditLog(t)
	out := new(watched)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: out, stderr: out}
		ended <- a.run(ctx, []string{"--directory", dir, "audit", "tail", "-f", "-n", "1"})
	}()
	<-out.await("plugin.approve")
	l := must(audit.Open(&audit.Options{Dir: filepath.Join(dir, "hako.store", "audit"), SegmentBytes: 300}))
	defer l.Close()
	for _, name := range []string{"one", "two", "three"} {
		if err := l.Append(t.Context(), &audit.Event{Type: audit.TypeCall, Target: audit.Target{Name: name}}); err != nil {
			t.Fatal(err)
		}
		<-out.await(name)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d: %s", code, out)
	}
}

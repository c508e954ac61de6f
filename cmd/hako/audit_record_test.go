package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
)

// actions are those in the log of a workplace, with their outcomes, oldest first.
func actions(t *testing.T, dir string) (list []string) {
	t.Helper()
	for entry, err := range audit.Dir(filepath.Join(dir, "hako.store", "audit")).Read(t.Context(), &audit.Query{Type: audit.TypeOperator}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(entry.Action+" "+entry.Target.Plugin+entry.Target.Name)+": "+
			entry.Outcome)
		if entry.Subject.User == "" && !strings.HasPrefix(entry.Action, "plugin.active") {
			t.Errorf("%s has no user", entry.Action)
		}
	}
	return list
}

func TestActionsAreRecorded(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	invokeWith(t, dir, "n\n", "plugin", "approve", "probe").want(t, exitFailed, "not approved")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	invoke(t, dir, "plugin", "revoke", "probe").want(t, exitOK)
	invoke(t, dir, "plugin", "revoke", "nobody").want(t, exitUsage)
	invoke(t, dir, "connect", "remove", "freee").want(t, exitUsage)
	invoke(t, dir, "secrets", "rotate").want(t, exitOK)
	invoke(t, dir, "backup", "saved").want(t, exitOK)
	want := []string{
		"plugin.approve probe: refused", "plugin.approve probe: begun", "plugin.approve probe: ok",
		"plugin.revoke probe: begun", "plugin.revoke probe: ok",
		"plugin.revoke nobody: begun", "plugin.revoke nobody: failed", "credential.remove freee: begun",
		"credential.remove freee: failed",
		"secrets.rotate: begun", "secrets.rotate: ok", "backup.create: begun", "backup.create: ok",
	}
	if got := actions(t, dir); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	invoke(t, dir, "audit", "verify").want(t, exitOK)
}

// TestUnrecordedActions: what cannot be recorded is not done, unless the operator prefers that.
func TestUnrecordedActions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		configuration string
		code          int
		want          string
		consents      int
	}{
		{"", exitUsage, "nothing was done, because it could not be recorded", 0},
		{"audit: {optional: true}\n", exitOK, "this is not recorded", 1},
		{"audit: {disabled: true}\n", exitOK, "Approved", 1},
	} {
		dir := workplace(t, test.configuration)
		put(t, filepath.Join(dir, "hako.store", "audit"), []byte("in the way"))
		invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, test.code, test.want)
		if got := must(grant.Load(filepath.Join(dir, "hako.consents.yaml"))).Consents(); len(got) != test.consents {
			t.Errorf("%q: %d consents", test.configuration, len(got))
		}
	}
}

// TestServeIsRecorded: with the configuration in force, and the plugins that come into service.
func TestServeIsRecorded(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	if err := os.Remove(filepath.Join(dir, "plugins", "probe.wasm")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t))
	before := actions(t, dir)
	invokeWith(t, dir, "", "serve", "--stdio").want(t, exitOK)
	got := actions(t, dir)
	if got = got[len(before):]; !slices.Equal(got, []string{"serve.start: ok", "serve.stop: ok"}) {
		t.Errorf("records: %q", got)
	}
	start := must(audit.Dir(filepath.Join(dir, "hako.store", "audit")).Last(t.Context(),
		&audit.Query{Action: "serve.start"}, 1))
	if d := start[0].Detail; d["version"] == "" || !strings.HasPrefix(d["configuration"], "sha256:") ||
		!strings.HasPrefix(d["plugin.probe"], "active ") {
		t.Errorf("%v", d)
	}
}

// TestCallsWithoutLog: without its log hako calls nothing, and says what to do; unless the operator prefers that, or
// keeps none.
func TestCallsWithoutLog(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	key := filepath.Join(dir, "hako.store", "audit", "audit.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	call := []string{"call", "probe_echo", `{"text":"x"}`}
	invoke(t, dir, call...).want(t, exitUsage, "audit.key is missing", "restore it")
	invoke(t, dir, "plugin", "revoke", "probe").want(t, exitUsage, "nothing was done", "restore it")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\naudit: {disabled: true}\n"))
	invoke(t, dir, call...).want(t, exitOK, "x\n")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\naudit: {optional: true}\n"))
	invoke(t, dir, call...).want(t, exitOK, "x\n", "not recorded")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, call...).want(t, exitOK, "x\n")
	invoke(t, dir, "audit", "verify").want(t, exitOK)
}

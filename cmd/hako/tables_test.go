package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// TestTables compares the rows of each table, with one space between columns.
func TestTables(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		print func(*strings.Builder) error
		want  string
	}{
		"permissions": {func(out *strings.Builder) error {
			one := policy.ExplainedDecision{Action: policy.Allow, Rule: "reads"}
			return printPermissions(out, []policy.ToolPermission{
				{Tool: "read", Plugin: "files", Permission: "allowed", Prospects: []policy.ExplainedDecision{one}},
				{Tool: "write", Plugin: "files", Permission: "depends",
					Prospects: []policy.ExplainedDecision{one, {Action: policy.Deny, Rule: "rest"}}},
			})
		}, "TOOL PLUGIN PERMISSION RULE\nread files allowed reads\n" +
			"write files depends " + policy.Allow.Permission() + ": reads; " + policy.Deny.Permission() + ": rest\n"},
		"calls of agents": {func(out *strings.Builder) error {
			return printAgentCalls(out, []agent.Status{
				{Session: "s", Call: "1", Tool: "read", State: agent.StateSent},
				{Session: "s", Call: "2", Tool: "read", State: "running"},
				{Session: "s", Call: "3", Tool: "read", State: "running", Alive: true},
			})
		}, "SESSION CALL TOOL STATE TAKEN\ns 1 read " + string(agent.StateSent) +
			" -\ns 2 read running, left -\ns 3 read running -\n"},
		"credentials": {func(out *strings.Builder) error {
			return printCredentials(out, []credential.Status{
				{Credential: "a", State: "ready", Public: map[string]string{"company": "1"}},
				{Credential: "b", Tenant: "acme", Provider: "freee", State: "none", Remedy: "connect it",
					Public: map[string]string{"company": "1"}},
			})
		}, "CREDENTIAL TENANT PROVIDER STATE EXPIRES ABOUT\na - - ready - company 1\nb acme freee none - connect it\n"},
		"access": {func(out *strings.Builder) error {
			return printAccess(out, &server.AccessList{
				Tokens: []console.TokenItem{{Setting: "http.auth", Name: "ci", User: "ci", State: "valid"},
					{ID: "t1", Name: "aki", User: "aki", Role: "admin", State: "revoked", Creator: "ken"}},
				Logins: []*connection.Login{{ID: "l1", User: "aki", Scopes: []string{"a", "b"}}},
			})
		}, "TOKEN NAME USER FOR STATE END LAST USED CREATED BY\nhttp.auth ci ci MCP valid - - -\n" +
			"t1 aki aki console, admin revoked - - ken\n\nLOGIN USER TENANT CLIENT SCOPES END CREATED\nl1 aki - - a b - -\n"},
		"what was revoked": {func(out *strings.Builder) error {
			return printRevoked(out, &server.Revoked{
				AccessList: server.AccessList{Tokens: []console.TokenItem{{ID: "t1", Name: "ci"}},
					Logins: []*connection.Login{{ID: "l1", User: "aki"}}},
				Sessions: 2, Remaining: []console.TokenItem{{Name: "old", Setting: "http.auth.tokens[0]"}},
			})
		}, "Revoked ci (t1)\nEnded the login of aki with an unnamed client (l1)\nEnded sessions in the console: 2\n" +
			"Still valid: old, because it is in the configuration: take it out of http.auth.tokens[0]\n"},
		"upstream servers": {func(out *strings.Builder) error {
			return printUpstreamTable(out, out, []inspect.Upstream{{Name: "a", State: "up", Transport: "stdio", Prefix: "a_", Tools: 2,
				Server: "s", Version: "1", Omitted: []string{"tool b"}}})
		}, "NAME STATE TRANSPORT PREFIX TOOLS PROMPTS RESOURCES PROTOCOL SERVER\na up stdio a_ 2 0 0 s 1\na: left out: tool b\n"},
		"upstream servers of a running hako": {func(out *strings.Builder) error {
			return printUpstreamTable(out, out, []inspect.Upstream{{Name: "a", State: "up", Serving: &inspect.UpstreamState{State: "idle"}},
				{Name: "b", State: "down"}})
		}, "NAME STATE TRANSPORT PREFIX TOOLS PROMPTS RESOURCES PROTOCOL SERVER IN HAKO SERVE\n" +
			"a up 0 0 0 - idle since -\nb down 0 0 0 - -\n"},
		"missing upstream servers": {func(out *strings.Builder) error {
			printMissingUpstreams(out, []mcpclient.Status{{Name: "a", State: mcpclient.Idle}, {Name: "b", State: mcpclient.Down, Error: "why"},
				{Name: "c", State: mcpclient.Connecting}, {Name: "d", State: mcpclient.Connecting, Listed: true}})
			return nil
		}, "down: upstream server b: why\nmissing: upstream server c: it is still being connected, and its tools are not known yet. " +
			"'hako upstreams' waits for it\n"},
		"questions": {func(out *strings.Builder) error {
			return printApprovals(out, []*approval.Question{{ID: "1", Tool: "read", Rule: "ask", Caller: approval.Caller{Frontend: "slack"}}})
		}, "ID TOOL ASKED BY RULE TIME LEFT\n1 read - (slack) ask " + terminal.TimeLeft(&approval.Question{}).String() + "\n"},
		"feedback": {func(out *strings.Builder) error {
			return printFeedback(out, []inspect.FeedbackEntry{{Rating: "good", Tenant: "t", User: "aki", Frontend: "slack", Answer: 3,
				Conversation: "c", Question: "a\nb", Text: "d"}})
		}, "TIME RATING TENANT WHO CONVERSATION ANSWER\n" + time.Time{}.Local().Format(time.DateTime) +
			" good t aki (slack) c 3\nasked: a b\nanswered: d\n"},
		"plugin": {func(out *strings.Builder) error {
			return printPlugin(out, &inspect.Report{Status: inspect.Status{Name: "files", Version: "1", State: host.Pending},
				Description: "one\ntwo\n", Config: []inspect.ConfigKey{{Key: "k", Type: "string", Default: 1, Description: "d"}}})
		}, "name files 1\ndescription one\ntwo\nlicence\nfile\ndigest\nstate " + string(host.Pending) +
			"\nconfiguration k (string, default 1): d\nlimits\n"},
		"backup": {func(out *strings.Builder) error {
			return printDatabases(out, "Wrote", []backup.File{{Path: "a.db", Bytes: 1 << 20}, {Path: "audit/1", Bytes: 1 << 20}}, "dir")
		}, backup.File{Path: "a.db"}.Title() + " 1MiB\naudit log 1MiB\nWrote 1 database, 2MiB: dir\n"},
	} {
		var out strings.Builder
		err := test.print(&out)
		if got := squeeze(out.String()); err != nil || got != test.want {
			t.Errorf("%s:\n%s%v, want\n%s", name, got, err, test.want)
		}
	}
}

// squeeze replaces the space between columns by one blank.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := printCredentials(&out, []credential.Status{{Credential: "a", State: "none", Remedy: "\x1b[2Jclear\nforged row"}})
	if err != nil || strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestGreeting(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	printGreeting(&out, "1.2.3", &config.Config{}, "http://host.example/mcp", "", []host.Status{
		{Name: "files", State: host.Active, Tools: []string{"file_read", "file_list"}},
		{Path: "broken.wasm", State: host.Broken, Reason: "it is no module"},
	})
	for _, want := range []string{"hako 1.2.3 serves MCP at http://host.example/mcp\n", "files " + string(host.Active) +
		" file_read, file_list\n", "broken.wasm " + string(host.Broken) + " it is no module\n", "hako mcp-config"} {
		if !strings.Contains(squeeze(out.String()), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "console") {
		t.Errorf("a console that is not served:\n%s", out.String())
	}
}

func TestAuditRows(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	row := auditPrinter(&out, time.FixedZone("JST", 9*60*60))
	entry := audit.Entry{Seq: 7}
	entry.Time = time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	for range 2 {
		if err := row(&entry); err != nil {
			t.Fatal(err)
		}
	}
	got := squeeze(out.String())
	if !strings.HasPrefix(got, "TIME (JST) RECORD WHO WHAT OUTCOME TOOK MORE\n2026-01-03 05:00:00 7 ") ||
		strings.Count(got, "\n") != 3 || strings.Contains(out.String(), " \n") {
		t.Errorf("\n%s", out.String())
	}
}

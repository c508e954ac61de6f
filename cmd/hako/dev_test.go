package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes"
)

// offline is a directory with a configuration for the fakes, which run as long as the test.
func offline(t *testing.T, more ...string) (string, *fakes.Fakes) {
	t.Helper()
	needsPlugins(t)
	f := fakes.New()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	text := must(f.WriteConfig(dir, server.URL))
	text += strings.ReplaceAll(strings.Join(more, ""), "URL", server.URL)
	put(t, filepath.Join(dir, "hako.yaml"), []byte(text))
	return dir, f
}

// TestToolsOffline calls the tools with secrets through the whole host, against the fakes.
func TestToolsOffline(t *testing.T) {
	t.Parallel()
	dir, f := offline(t)
	document := `"spreadsheet_id":"` + fakes.Spreadsheet + `"`
	for _, test := range []struct {
		tool, arguments string
		code            int
		want            []string
	}{
		{"list_employees", `{}`, exitOK, []string{`"vendor":"freee"`, "見本 花子"}},
		{"calculate_overtime", `{"employee_id":"102","month":"2026-05"}`, exitOK, []string{"2026-05-01"}},
		{"write_rows_to_google_sheet", `{` + document + `,"range":"勤怠 2026!A1","rows":[["氏名","残業"],["見本 あき",320]]}`,
			exitOK, []string{"Appended 2 rows (4 cells) at '勤怠 2026'!A1:B2."}},
		{"write_rows_to_google_sheet",
			`{` + document + `,"range":"'勤怠 2026'","rows":[["=IMPORTXML(\"https://evil.example\",\"//a\")"]]}`, exitOK,
			[]string{"'勤怠 2026'!A3."}},
		{"read_google_sheet", `{` + document + `,"range":"勤怠 2026"}`, exitOK, []string{`["見本 あき","320"]`, `=IMPORTXML`,
			`"total_rows":3`}},
		{"read_google_sheet", `{` + document + `,"range":"勤怠 2025"}`, exitFailed,
			[]string{"Its sheets: 'Sheet1', '勤怠 2026'"}},
		{"read_google_sheet", `{"spreadsheet_id":"` + fakes.PrivateSpreadsheet + `","range":"Sheet1"}`, exitFailed,
			[]string{"is not shared with " + fakes.ServiceAccount}},
		{"send_slack_dm", `{"user_id":"` + fakes.SlackUser + `","message":"<!channel> 残業は 5 時間 20 分です。"}`, exitOK,
			[]string{"Sent to " + fakes.SlackUser}},
		{"send_slack_dm", `{"user_id":"` + fakes.SlackGone + `","message":"x"}`, exitFailed,
			[]string{"user_disabled): check user_id"}},
		{"send_slack_dm", `{"user_id":"aki","message":"x"}`, exitFailed, []string{"user_id: must match the pattern"}},
		{"get_weather", `{"location":"東京","lang":"en"}`, exitOK, []string{"Tokyo"}},
	} {
		o := invoke(t, dir, "call", test.tool, test.arguments)
		o.want(t, test.code, test.want...)
	}
	for tenant, want := range map[string]string{"kot": `"vendor":"kot"`, "smarthr": `"vendor":"smarthr"`} {
		invoke(t, dir, "call", "list_employees", "--tenant", tenant).want(t, exitOK, want)
	}
	invoke(t, dir, "call", "list_employees", "--tenant", "connected").want(t, exitFailed,
		"hako connect freee --tenant connected")
	if m := f.Slack.Messages(); len(m) != 1 || m[0].Text != "&lt;!channel&gt; 残業は 5 時間 20 分です。" {
		t.Errorf("Slack has %+v", m)
	}
}

// TestSentOnce: with the host's retries around it, what may have been done is still done once.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	dir, f := offline(t)
	for fake, path := range map[string]string{"google": "/v4/**", "slack": "/api/chat.postMessage"} {
		fail(t, f, `{"fake":"`+fake+`","method":"POST","path":"`+path+`","drop":true,"after":true,"times":1}`)
	}
	invoke(t, dir, "call", "write_rows_to_google_sheet", `{"spreadsheet_id":"`+fakes.Spreadsheet+
		`","range":"Sheet1","rows":[["once"]]}`).
		want(t, exitFailed, "may have been written: read the sheet")
	if got := f.Google.Values(fakes.Spreadsheet, "Sheet1"); len(got) != 1 {
		t.Errorf("the sheet has %v, want the row once", got)
	}
	invoke(t, dir, "call", "send_slack_dm", `{"user_id":"`+fakes.SlackUser+`","message":"once"}`).want(t, exitFailed,
		"may have been sent")
	if m := f.Slack.Messages(); len(m) != 1 {
		t.Errorf("Slack has %+v, want the message once", m)
	}
	// An overwrite is the same however often it is sent, so the host tries again.
	fail(t, f, `{"fake":"google","method":"PUT","status":503,"times":1}`)
	invoke(t, dir, "call", "write_rows_to_google_sheet", `{"spreadsheet_id":"`+fakes.Spreadsheet+
		`","range":"Sheet1!A1","rows":[["again"]],"mode":"overwrite"}`).
		want(t, exitOK, "Wrote 1 rows")
}

// TestToolsOnRecordings: with MOCK_MODE the tools answer from their recordings, without any credential.
func TestToolsOnRecordings(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("mock: true\nshipped: {enabled: true}\n"))
	document := `"spreadsheet_id":"1HAKO-example-of-a-spreadsheet-for-MOCK_MODE"`
	for _, test := range []struct{ tool, arguments, want string }{
		{"send_slack_dm", `{"user_id":"U024BE7LH","message":"x"}`, "Sent to U024BE7LH"},
		{"read_google_sheet", `{` + document + `,"range":"Sheet1"}`, `"total_rows":4`},
		{"read_google_sheet", `{` + document + `,"range":"Sheet1!A1:C4","values":"unformatted"}`, `1210`},
		{"write_rows_to_google_sheet", `{` + document + `,"range":"Sheet1","rows":[["見本 あき","営業部",1]]}`,
			"Appended 1 rows"},
		{"write_rows_to_google_sheet",
			`{` + document + `,"range":"Sheet1!A5","mode":"overwrite","rows":[["見本 あき","営業部",1]]}`, "Wrote 1 rows"},
	} {
		invoke(t, dir, "call", test.tool, test.arguments).want(t, exitOK, test.want, "recording")
	}
}

// fail plans a failure as a user does.
func fail(t *testing.T, f *fakes.Fakes, plan string) {
	t.Helper()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/_faults", strings.NewReader(plan)))
	if w.Code != http.StatusNoContent {
		t.Fatalf("%s: %d %s", plan, w.Code, w.Body)
	}
}

// TestSecretsStayOut: no secret is in what a tool answers or hako logs, whatever the service says.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	dir, f := offline(t)
	token := strings.TrimSpace(string(must(os.ReadFile(filepath.Join(dir, "slack.token")))))
	fail(t, f, `{"fake":"slack","body":"{\"ok\":false,\"error\":\"your token is `+token+`\"}"}`)
	o := invoke(t, dir, "call", "send_slack_dm", `{"user_id":"`+fakes.SlackUser+`","message":"x"}`, "--log-level",
		"debug")
	o.want(t, exitFailed, "your token is ***")
	if strings.Contains(o.stdout+o.stderr, token) {
		t.Errorf("the token is in it: %s", o)
	}
}

// examples builds all example plugins and returns the folder they are in.
func examples(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, manifest := range must(filepath.Glob("../../examples/*/manifest.yaml")) {
		dir := filepath.Dir(must(filepath.Abs(manifest)))
		invoke(t, ".", "plugin", "build", dir, "-o", filepath.Join(folder, filepath.Base(dir)+".wasm")).want(t, exitOK)
	}
	return folder
}

// TestExamples builds each example, says yes to it, and calls its tool.
func TestExamples(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds plugins")
	}
	folder := examples(t)
	dir, f := offline(t, "plugins: [", folder, "]\n")
	text := string(must(os.ReadFile(filepath.Join(dir, "hako.yaml"))))
	for _, line := range []string{"  github-issue: ", "  web-search: "} { // they are there, but commented out
		text = strings.ReplaceAll(text, "#"+line, line)
	}
	put(t, filepath.Join(dir, "hako.yaml"), []byte(text))
	put(t, filepath.Join(dir, "tables", "sales.csv"), []byte("item,price\ntea,120\ncoffee,180\n"))
	for name, more := range map[string][]string{
		"calculate-sum": nil, "analyze-csv": {"--mount", "data=" + filepath.Join(dir, "tables")},
		"github-issue": nil, "web-search": nil, "create-record": nil,
	} {
		invoke(t, dir, append([]string{"plugin", "approve", name, "--yes"}, more...)...).want(t, exitOK)
	}
	for tool, test := range map[string]struct{ arguments, want string }{
		"calculate_sum": {`{"a":2,"b":40.5}`, "42.5"},
		"analyze_csv":   {`{"filepath":"sales.csv","operations":["sum","count"]}`, `"sum":300`},
		"github_create_issue": {`{"title":"A tool without a server","labels":["idea"]}`,
			"https://github.com/hako-run/demo/issues/1"},
		"web_search":    {`{"query":"box programs"}`, "https://sandbox.example/"},
		"create_record": {`{"table":"notes","data":{"text":"お茶"}}`, `"text":"お茶"`},
	} {
		invoke(t, dir, "call", tool, test.arguments).want(t, exitOK, test.want)
	}
	invoke(t, dir, "call", "analyze_csv", `{"filepath":"../hako.yaml","operations":["count"]}`).want(t, exitFailed,
		"hako.yaml")
	if issues := f.GitHub.Issues(fakes.Repository); len(issues) != 1 ||
		!slices.Equal(issues[0].Labels, []string{"idea"}) {
		t.Errorf("GitHub has %+v", issues)
	}
}

// TestDevElsewhere: what hako-dev does is found under "hako dev" too, or said to be elsewhere.
func TestDevElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	invoke(t, dir, "dev", "fakes", "--anything").want(t, exitUsage, "fakes is a command of the program hako-dev",
		"and run hako-dev fakes")
	if runtime.GOOS == "windows" {
		return // a shell script stands in for it
	}
	script := "#!/bin/sh\necho \"got $*\"\necho why >&2\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "hako-dev"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	o := invoke(t, dir, "dev", "fakes", "--anything", "--help")
	if o.code != 3 || !strings.HasPrefix(o.stdout, "got fakes ") || !strings.HasSuffix(o.stdout, " --anything --help\n") || o.stderr != "why\n" {
		t.Errorf("got %s", o)
	}
}

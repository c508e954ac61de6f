package metrics_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// scrape is the text that Prometheus would get.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	data, err := io.ReadAll(recorder.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// filled has a sample of every metric.
func filled(t *testing.T) *metrics.Metrics {
	t.Helper()
	m := metrics.New("v1.2.3")
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), "manifests", "files.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmfile.Embed(guesttest.Build(t, "plugins/files"), map[string][]byte{abi.ManifestSection: text})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(&host.Options{
		Shipped:       []host.Shipped{{File: "files.wasm", Wasm: guesttest.Bytes(wasm)}},
		ShippedMounts: map[string]string{"workspace": t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Show(h)
	m.CallStarted(&pipeline.Running{Method: abi.CallTool})
	m.CallEnded(pipeline.Record{
		Caller: pipeline.Caller{Frontend: pipeline.FrontendHTTP}, Method: abi.CallTool, Name: "file_read",
		Source:  "files",
		Outcome: pipeline.Timeout, Duration: time.Minute + 3*time.Second, Input: 10, Output: 20, Steps: 5,
		Action: policy.Ask, Rule: "ask before writing",
		Answers:      []pipeline.Answer{{Outcome: approval.Yes, Waited: time.Minute}, {Outcome: approval.No}},
		Elicitations: []pipeline.Elicited{{Mode: "form", Outcome: "accept"}}, Quota: "calls of a user",
	})
	governed(t, m)
	m.RequestEnded("weather",
		httpbroker.Observation{Rule: "jma", Status: 204, Source: httpbroker.SourceNetwork, Duration: time.Second,
			Tries: 3, Bytes: 99})
	m.RequestEnded("weather", httpbroker.Observation{Rule: "jma", Status: 777, Source: httpbroker.SourceNetwork})
	m.RequestEnded("weather", httpbroker.Observation{Code: abi.CodeNotGranted})
	m.SecretFound(secretscan.Finding{Rule: "github-pat"})
	m.SlackEvent("mention", "taken")
	m.SlackRequest("chat.postMessage", "ok")
	m.SlackRateLimited("chat.update")
	m.SlackRollover()
	m.AgentRequest("send", "ok")
	m.AgentCall(agent.ResultAnswered, time.Second)
	m.AgentSessions(1)
	m.AgentOutdated(1)
	m.TurnEnded(chat.Record{Frontend: pipeline.FrontendTerminal, Outcome: chat.OutcomeLimit, Duration: 8 * time.Second,
		Rounds: 11, Calls: 10})
	m.AnswerRated(chat.Feedback{Frontend: pipeline.FrontendSlack, Good: true})
	m.ModelAsked(llm.Completion{Name: "claude", Outcome: llm.Completed, Duration: 3 * time.Second,
		FirstText: time.Second, Attempts: 2, Usage: llm.Usage{Input: 7}, Cost: 0.5})
	m.CredentialRenewed(credential.Renewal{Credential: "freee", Outcome: credential.Revoked})
	credentials, err := credential.New(
		credential.Options{
			Credentials: map[string]credential.Spec{"kot": {Token: secret.Source{Env: "HAKO_TEST_UNSET"}}}})
	if err != nil {
		t.Fatal(err)
	}
	m.ShowCredentials(credentials)
	m.ShowResults(results.New(nil))
	m.ShowReloads(func() (time.Time, bool) { return time.Unix(1, 0), true })
	upstreams, err := mcpclient.New(mcpclient.Options{Catalog: new(catalog.Catalog)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstreams.Close() })
	if err := upstreams.Apply([]mcpclient.Spec{{Name: "search", Command: filepath.Join(t.TempDir(), "missing")},
		{Name: "off", URL: "https://mcp.example.com/", Disabled: true}}); err != nil {
		t.Fatal(err)
	}
	if err := upstreams.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.ShowUpstreams(upstreams)
	m.CommandEnded("shell", execbroker.Observation{Program: "git", Outcome: execbroker.OutcomeOK,
		Duration: time.Second})
	m.ConnectionEnded("shell",
		gateway.Observation{Rule: "github.com:443", Outcome: gateway.OutcomeOK, Sent: 10, Received: 20})
	inside(t, m)
	m.StatementEnded("tasks", sqlbroker.Observation{Function: "query", Duration: time.Millisecond})
	m.StatementEnded("tasks", sqlbroker.Observation{Function: "query", Code: abi.CodeBusy, Duration: time.Second})
	return m
}

// inside shows what happens at the MCP frontend, in the sandbox and in the audit log.
func inside(t *testing.T, m *metrics.Metrics) {
	t.Helper()
	m.RequestAnswered("stateless", "tools/call", time.Second)
	m.ShowFrontend(func() connection.Load { return connection.Load{Requests: 1, Streams: 2, Sessions: 3} },
		[]string{"auth", "origin"})
	m.RequestRefused("auth")
	m.CallQueued("files", 20*time.Millisecond)
	m.CodeLoaded("files", sandbox.FromCache, 200*time.Millisecond)
	m.InstanceMade("files", sandbox.FromImage, time.Millisecond)
	m.InstanceRestored("files", 30*time.Microsecond)
	m.InstanceClosed("files", sandbox.CloseFailed)
	log, err := audit.Open(&audit.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Append(t.Context(), &audit.Event{Type: "tools/call"}); err != nil {
		t.Fatal(err)
	}
	m.ShowAudit(log)
}

// governed shows a policy file that has broken, and a question that waits.
func governed(t *testing.T, m *metrics.Metrics) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hako.policy.yaml")
	live, err := policy.OpenLive(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("version: 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Reload(); err == nil {
		t.Fatal("version 2 is taken")
	}
	s := storetest.Open(t, t.TempDir())
	approvals, err := approval.New(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var pending *approval.PendingError
	if _, err := approvals.Ask(t.Context(), &approval.Question{Tool: "file_write"},
		approval.Prompter{Later: true}); !errors.As(err, &pending) {
		t.Fatal(err)
	}
	m.ShowGovernance(live, approvals)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	text := scrape(t, filled(t))
	for _, want := range []string{
		`hako_calls_total{frontend="mcp-http",method="tools/call",name="file_read",outcome="timeout",plugin="files"} 1`,
		`hako_call_duration_seconds_bucket{method="tools/call",name="file_read",plugin="files",le="5"} 1`,
		`hako_call_duration_seconds_bucket{method="tools/call",name="file_read",plugin="files",le="2"} 0`,
		`hako_call_bytes_total{direction="in",plugin="files"} 10`,
		`hako_call_bytes_total{direction="out",plugin="files"} 20`,
		`hako_calls_in_flight{method="tools/call"} 0`,
		`hako_plugins{state="active"} 1`,
		`hako_policy_decisions_total{action="ask",rule="ask before writing"} 1`,
		`hako_approvals_total{outcome="yes"} 1`,
		`hako_approvals_total{outcome="no"} 1`,
		`hako_approvals_waiting 1`,
		`hako_quota_refusals_total{quota="calls of a user"} 1`,
		`hako_policy_file_broken 1`,
		`hako_http_requests_total{outcome="2xx",permission="jma",plugin="weather",source="network"} 1`,
		`hako_http_requests_total{outcome="other",permission="jma",plugin="weather",source="network"} 1`,
		`hako_http_requests_total{outcome="not-granted",permission="",plugin="weather",source=""} 1`,
		`hako_sql_statements_total{function="query",outcome="ok",plugin="tasks"} 1`,
		`hako_sql_statements_total{function="query",outcome="busy",plugin="tasks"} 1`,
		`hako_sql_statement_duration_seconds_bucket{function="query",plugin="tasks",le="0.001"} 1`,
		`hako_http_request_duration_seconds_count{permission="jma",plugin="weather"} 2`,
		`hako_plugins{state="broken"} 0`,
		`hako_chat_turn_duration_seconds_bucket{frontend="terminal",outcome="limit",le="10"} 1`,
		`hako_chat_turn_rounds_sum{frontend="terminal"} 11`,
		`hako_chat_tool_calls_total{frontend="terminal"} 10`,
		`hako_llm_request_duration_seconds_count{model="claude",outcome="ok"} 1`,
		`hako_llm_first_text_seconds_sum{model="claude"} 1`,
		`hako_llm_tokens_total{model="claude",type="input"} 7`,
		`hako_llm_cost_total{model="claude"} 0.5`,
		`hako_credential_renewals_total{credential="freee",outcome="revoked"} 1`,
		`hako_credentials{credential="kot",state="unusable"} 1`,
		`hako_credentials{credential="kot",state="ready"} 0`,
		`hako_sandbox_calls{plugin="files",state="running"} 0`,
		`hako_build_info{goversion=`,
		`hako_approval_wait_seconds_bucket{outcome="yes",le="60"} 1`,
		`hako_approvals_total{outcome="expired"} 0`,
		`hako_mcp_request_duration_seconds_count{method="tools/call",mode="stateless"} 1`,
		`hako_mcp_requests_refused_total{reason="auth"} 1`,
		`hako_mcp_requests_refused_total{reason="origin"} 0`,
		`hako_mcp_requests_in_flight 1`,
		`hako_mcp_streams 2`,
		`hako_mcp_sessions 3`,
		`hako_sandbox_queue_seconds_bucket{plugin="files",le="0.05"} 1`,
		`hako_sandbox_compile_seconds_count{how="cache"} 1`,
		`hako_sandbox_instance_start_seconds_count{how="image",plugin="files"} 1`,
		`hako_sandbox_restore_seconds_bucket{plugin="files",le="5e-05"} 1`,
		`hako_sandbox_instances_closed_total{plugin="files",reason="failed"} 1`,
		`hako_sandbox_steps_total{plugin="files"} 5`,
		`hako_sandbox_instances{plugin="files",state="idle"} 0`,
		`hako_sandbox_interpreted{plugin="files"} 0`,
		`hako_plugin_update_waiting{plugin="files"} 0`,
		`hako_sandbox_memory_limit_bytes 2.147483648e+09`,
		`hako_audit_records_total 1`,
		`hako_audit_failures_total 0`,
		`hako_audit_unsigned_records 1`,
		`hako_audit_signed_timestamp_seconds 0`,
		`hako_http_attempts_total{permission="jma",plugin="weather"} 3`,
		`hako_http_response_bytes_total{permission="jma",plugin="weather"} 99`,
		`hako_llm_attempts_total{model="claude"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestLabelsAreBounded sends what nobody offers: a client must not make new series.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New("")
	for i := range 100 {
		method := fmt.Sprint("method/", i)
		m.CallStarted(&pipeline.Running{Method: method})
		m.CallEnded(pipeline.Record{Method: method, Outcome: pipeline.InvalidArguments})
	}
	if n := strings.Count(scrape(t, m), "hako_calls_total{"); n != 1 {
		t.Errorf("%d series for methods that do not exist", n)
	}
}

// TestDocumentation compares docs/metrics.md with what is served.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(guesttest.Root(), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := find(string(page), "(?m)^\\| `(hako_[a-z_]+)` \\| ([a-z]+) ")
	served := find(scrape(t, filled(t)), `(?m)^# TYPE (hako_[a-z_]+) ([a-z]+)$`)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %q\nserved     %q", documented, served)
	}
	for _, outcome := range pipeline.Outcomes {
		if !strings.Contains(string(page), "`"+string(outcome)+"`") {
			t.Errorf("docs/metrics.md does not name the outcome %s", outcome)
		}
	}
	for _, reason := range slices.Concat(mcpserver.RefusalReasons, sandbox.CloseReasons) {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("docs/metrics.md does not name the reason %s", reason)
		}
	}
	for _, outcome := range approval.Outcomes {
		if !strings.Contains(string(page), "`"+outcome+"`") {
			t.Errorf("docs/metrics.md does not name the outcome %s of approvals", outcome)
		}
	}
	for _, result := range agent.Results {
		if !strings.Contains(string(page), "`"+result+"`") {
			t.Errorf("docs/metrics.md does not name the result %s of agents' calls", result)
		}
	}
}

func find(text, pattern string) []string {
	var list []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		list = append(list, match[1]+" "+match[2])
	}
	slices.Sort(list)
	return list
}

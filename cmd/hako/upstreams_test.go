package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/host/app/inspect"
)

// upstreamOf is an entry of mcp_servers.json for the hako of another directory.
func upstreamOf(dir string) string {
	return fmt.Sprintf(
		`{"command": %q, "args": ["-C", %q, "serve", "--stdio"], "env": {%q: "1", "HAKO_CACHE": "${HAKO_CACHE}"}}`,
		os.Args[0],
		dir,
		asProgram,
	)
}

// downstream is a workplace without plugins whose upstream server "box" is the hako of another one, with the probe.
func downstream(t *testing.T, file, configuration string) string {
	t.Helper()
	inner, dir := approved(t, ""), t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte(configuration))
	put(t, filepath.Join(dir, file), []byte(`{"mcpServers": {"box": `+upstreamOf(inner)+`}}`))
	return dir
}

// TestUpstreams: an upstream server's tools are those of every command.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	dir := downstream(t, "servers.json", "upstreams: servers.json\n")
	invoke(t, dir, "tools").want(t, exitOK, "box_probe_echo", "Gives the text back.")
	invoke(t, dir, "call", "box_probe_echo", `{"text":"through two of them"}`).want(t, exitOK, "through two of them")
	invoke(t, dir, "call", "box_probe_fail", `{"text":"x"}`).want(t, exitFailed)
	invoke(t, dir, "call", "box_prob_echo", "{}").want(t, exitUsage, "did you mean box_probe_echo")
	o := invoke(t, dir, "upstreams", "--json")
	var list []inspect.Upstream
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, o)
	}
	if s := list[0]; s.Name != "box" || s.State != "up" || s.Prefix != "box_" || s.Server != "hako" || s.Tools == 0 ||
		s.Protocol != "2026-07-28" {
		t.Errorf("got %+v", s)
	}
}

// TestUpstreamsFromCache: commands list the tools of a server that they have seen without starting it, and say which
// servers are missing. A call starts its server.
func TestUpstreamsFromCache(t *testing.T) {
	t.Parallel()
	dir := downstream(t, "servers.json", "upstreams: servers.json\n")
	invoke(t, dir, "upstreams").want(t, exitOK, "box   up")
	data, err := os.ReadFile(filepath.Join(dir, "servers.json"))
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	put(t, filepath.Join(dir, "servers.json"), bytes.Replace(data, []byte(`{"mcpServers": {`),
		fmt.Appendf(nil, `{"mcpServers": {"lost": {"command": %q}, `, gone), 1))
	o := invoke(t, dir, "tools", "--json")
	o.want(t, exitOK, "box_probe_echo", "down: upstream server lost")
	if strings.Contains(o.stderr, "box") {
		t.Errorf("a cached server is reported: %s", o)
	}
	file := filepath.Join(dir, "servers.json")
	put(t, file, bytes.Replace(data, []byte(`"command"`), []byte(`"startTimeout": "20s", "command"`), 1))
	cached, err := filepath.Glob(filepath.Join(dir, "*", "upstreams", "box.json"))
	if err != nil || len(cached) != 1 {
		t.Fatalf("cached files %v, %v", cached, err)
	}
	lists, err := os.ReadFile(cached[0])
	if err != nil {
		t.Fatal(err)
	}
	put(t, cached[0], bytes.Replace(lists, []byte(`"name":"probe_echo"`), []byte(`"name":"probe_past"`), 1))
	invoke(t, dir, "tools").want(t, exitOK, "box_probe_past") // without the server
	invoke(t, dir, "call", "box_probe_echo", `{"text":"now"}`).want(t, exitOK, "now")
	if o := invoke(t, dir, "tools"); strings.Contains(o.stdout, "box_probe_past") {
		t.Errorf("the call has not refreshed the lists: %s", o)
	}
}

// TestCommandsWithMissingUpstreams: tools, chat and agent apply have the tools of a cached server without connecting it,
// and say why another one is missing. How long they wait is in host/app/server: TestAwaitLists.
func TestCommandsWithMissingUpstreams(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "box", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "open", Description: "Opens.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return new(mcp.CallToolResult), nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	var requests atomic.Int64
	box := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(box.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the context does not end with the connection
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	agents, _ := agentPlaceWith(t, "", "upstreams: servers.json\n")
	chats, f := offline(t, "upstreams: servers.json\n")
	f.Anthropic.Script = must(demo.ParseScript("steps: [{say: Hello!}]"))
	for _, dir := range []string{agents, chats} {
		file := filepath.Join(dir, "servers.json")
		put(t, file, fmt.Appendf(nil, `{"mcpServers": {"box": {"url": %q}}}`, box.URL))
		invoke(t, dir, "upstreams").want(t, exitOK, "box   up")
		put(t, file, fmt.Appendf(nil, `{"mcpServers": {"box": {"url": %q}, "mute": {"url": %q, "startTimeout": "100ms"}}}`,
			box.URL, silent.URL))
	}
	filled := requests.Load()
	const missing = "down: upstream server mute: it did not respond within 100ms"
	invoke(t, agents, "tools").want(t, exitOK, "box_open", missing)
	invoke(t, agents, "agent", "apply", managedagents.DefaultAgent, "--dry-run").want(t, exitOK, "  + box_open\n", missing)
	invokeWith(t, chats, "hello", "chat").want(t, exitOK, "Hello!", missing)
	if sent := string(f.Anthropic.Requests.All()[0].Body); !strings.Contains(sent, `"box_open"`) {
		t.Errorf("the model was sent %s", sent)
	}
	if n := requests.Load() - filled; n != 0 {
		t.Errorf("%d requests to a server that is in the cache", n)
	}
}

// TestUpstreamLikeAPlugin: a server that has the name of a plugin joins under its prefix, and is told from the plugin
// in policies.
func TestUpstreamLikeAPlugin(t *testing.T) {
	t.Parallel()
	inner, dir := approved(t, ""), approved(t, "upstreams: servers.json\n")
	put(t, filepath.Join(dir, "servers.json"), []byte(`{"mcpServers": {"probe": `+upstreamOf(inner)+`}}`))
	invoke(t, dir, "tools").want(t, exitOK, "probe_probe_echo    probe.upstream", "probe_echo          probe ")
	for _, tool := range []string{"probe_echo", "probe_probe_echo"} {
		invoke(t, dir, "call", tool, `{"text":"both"}`).want(t, exitOK, "both")
	}
	invoke(t, dir, "upstreams").want(t, exitOK, "probe  up")
}

// TestUpstreamsThatOfferNothing: what a plugin offers already is not the server's, also for hako upstreams.
func TestUpstreamsThatOfferNothing(t *testing.T) {
	t.Parallel()
	inner := approved(t, "results: {disabled: true}\n")
	dir := approved(t, "upstreams: servers.json\nplugin: {probe: {prefix: box_}}\n")
	put(t, filepath.Join(dir, "servers.json"), []byte(`{"mcpServers": {"box": `+upstreamOf(inner)+`}}`))
	o := invoke(t, dir, "upstreams", "--json")
	var list []inspect.Upstream
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list) != 1 || list[0].Tools != 0 ||
		list[0].State != "unoffered" || len(list[0].Omitted) == 0 {
		t.Errorf("%v: %s", err, o)
	}
}

// TestUpstreamDown: a server that is down is reported, and the rest goes on.
func TestUpstreamDown(t *testing.T) {
	t.Parallel()
	dir := approved(t, "upstreams: servers.json\n")
	put(
		t,
		filepath.Join(dir, "servers.json"),
		[]byte(
			`{"mcpServers": {"gone": {"command": "no-such-program"}, "off": {"url": "https://mcp.example.com/", "disabled": true}}}`,
		),
	)
	invoke(t, dir, "upstreams").want(t, exitFailed, "gone  down", "off   disabled",
		"no-such-program is not in the PATH")
	invoke(t, dir, "tools").want(t, exitOK, "probe_echo", "down: upstream server gone")
	o := invoke(t, dir, "call", "probe_echo", `{"text":"here"}`)
	if o.want(t, exitOK, "here"); strings.Contains(o.stderr, "gone") {
		t.Errorf("a server that the call does not need was started: %s", o)
	}
	invoke(t, dir, "call", "gone_x", "{}").want(t, exitUsage, "down: upstream server gone", `unknown tool "gone_x"`)
}

// TestUpstreamFileErrors: what is wrong with the file is said, with its place.
func TestUpstreamFileErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"a misspelt key": {"{\"mcpServers\": {\"a\": {\n\"comand\": \"x\"}}}",
			`servers.json:2:1: mcpServers.a: unknown key "comand": did you mean "command"?`},
		"no JSON":        {"{", "servers.json:"},
		"equal prefixes": {`{"mcpServers": {"a": {"command": "x", "prefix": "p_"}, "b": {"command": "x", "prefix": "p_"}}}`, "a and b have the same prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: servers.json\n"))
			put(t, filepath.Join(dir, "servers.json"), []byte(test.text))
			for _, command := range [][]string{{"upstreams"}, {"tools"}, {"serve", "--http", "127.0.0.1:0"}, {"config", "check"}} {
				invoke(t, dir, command...).want(t, exitUsage, test.want)
			}
		})
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: nowhere.json\n"))
	invoke(t, dir, "upstreams").want(t, exitUsage, "nowhere.json")
	invoke(t, t.TempDir(), "upstreams").want(t, exitOK, "no upstream servers are configured")
}

// TestAC16ServeUpstreams: The tools are offered over MCP, and a changed file takes effect while hako serves.
func TestAC16ServeUpstreams(t *testing.T) {
	t.Parallel()
	dir := downstream(t, "config/mcp_servers.json", "upstreams: config/mcp_servers.json\n")
	s := serve(t, dir)
	<-s.stderr.await("the tools of an upstream server are available")
	if _, answer := s.rpc(t, "", "tools/call", "box_probe_echo", `"name":"box_probe_echo","arguments":{"text":"over MCP"},`); !strings.Contains(
		answer,
		`"text":"over MCP"`,
	) {
		t.Errorf("tools/call: %s", answer)
	}
	_, body := get(t, s.base()+"/metrics", nil)
	for _, want := range []string{`hako_upstream_up{server="box"} 1`, `hako_upstream_idle{server="box"} 0`, `hako_upstream_restarts_total{server="box"} 0`, `hako_calls_total{frontend="mcp-http",method="tools/call",name="box_probe_echo",outcome="ok",plugin="box"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	applied := s.stderr.await("a new configuration of upstream servers is in force")
	put(t, filepath.Join(dir, "config", "mcp_servers.json"), []byte(`{"mcpServers": {}}`))
	<-applied
	if status, answer := s.rpc(t, "", "tools/list", "", ""); status != http.StatusOK ||
		strings.Contains(answer, "box_") {
		t.Errorf("tools/list: %s", answer)
	}
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// TestAC17Enabled: MCP_ENABLED turns the servers off, or on with the usual file.
func TestAC17Enabled(t *testing.T) {
	named := downstream(t, "servers.json", "upstreams: servers.json\n")
	usual := downstream(t, "config/mcp_servers.json", "locale: en\n")
	offers := func(dir string) bool {
		o := invoke(t, dir, "tools")
		o.want(t, exitOK)
		return strings.Contains(o.stdout, "box_probe_echo")
	}
	for _, test := range []struct {
		enabled, file string
		dir           string
		want          bool
	}{
		{"", "", named, true}, {"false", "", named, false}, {"true", "", named, true},
		{"", "", usual, false}, {"true", "", usual, true}, {"false", "config/mcp_servers.json", usual, false},
		{"", filepath.Join(usual, "config", "mcp_servers.json"), usual, true},
	} {
		t.Setenv("MCP_ENABLED", test.enabled)
		t.Setenv("MCP_SERVERS_CONFIG", test.file)
		if got := offers(test.dir); got != test.want {
			t.Errorf("MCP_ENABLED=%q MCP_SERVERS_CONFIG=%q: offered %v, want %v", test.enabled, test.file, got,
				test.want)
		}
	}
}

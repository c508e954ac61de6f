package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// TestAC6SeveralServers: each has its own prefix, and one does not see the other's calls.
func TestAC6SeveralServers(t *testing.T) {
	t.Parallel()
	other := child("other", "plain")
	other.Prefix = "o-"
	r := newRig(t, child("plain", "plain"), other, newWeb(t).spec("web"))
	for _, name := range []string{"plain_pid", "o-pid", "web_pid"} {
		if !slices.Contains(r.tools(), name) {
			t.Errorf("%s is not among %v", name, r.tools())
		}
	}
	if a, b := text(r.call("plain_pid", "{}")), text(r.call("o-pid", "{}")); a == b {
		t.Errorf("both have process %s", a)
	}
}

// TestAC7GracefulDegradation: servers that fail at the start are skipped, with a reason in the log, and the others
// serve.
func TestAC7GracefulDegradation(t *testing.T) {
	t.Parallel()
	silent := child("silent", "silent")
	silent.StartTimeout = 300 * time.Millisecond
	unset := child("unset", "plain")
	unset.Env = merged(unset.Env, map[string]mcpclient.Value{"TOKEN": {Text: "${HAKO_TEST_UNSET}"}})
	r := newRig(t, child("plain", "plain"), child("exits", "exits"), silent, unset,
		mcpclient.Spec{Name: "missing", Command: "no-such-program-here"},
		mcpclient.Spec{Name: "refused", URL: "http://127.0.0.1:1/?key=secret"})
	if got := text(r.call("plain_echo", `{"text":"hello"}`)); got != "hello" {
		t.Errorf("got %q", got)
	}
	for name, want := range map[string]string{
		"exits": "the program has exited: exit status 1: the token is missing", "silent": "did not respond within 300ms: raise startTimeout",
		"unset": "HAKO_TEST_UNSET is not set", "missing": "not in the PATH", "refused": "connection refused",
	} {
		if s := r.status(name); s.State != mcpclient.Down || !strings.Contains(s.Error, want) || s.Retry.IsZero() {
			t.Errorf("%s: %+v, want %q", name, s, want)
		}
		if log := r.log.String(); !strings.Contains(log, "upstream="+name) || strings.Contains(log, "key=secret") {
			t.Errorf("the log does not name %s, or shows too much", name)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "where=stderr") || !strings.Contains(log, "the token is missing") {
		t.Error("the log does not have what the program wrote to its standard error")
	}
}

// TestDeath: a call in flight when the server dies is a tool error; the server comes back, and its tools have not gone
// meanwhile.
func TestDeath(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	changes := 0
	defer r.catalog.Watch(func() { changes++ })()
	got := r.call("plain_die", "{}")
	if !got.Response.IsError || !strings.Contains(text(got), "the connection broke") {
		t.Errorf("got %+v", got.Response)
	}
	if got := text(r.call("plain_echo", `{"text":"alive"}`)); got != "alive" {
		t.Errorf("got %q", got)
	}
	if s := r.status("plain"); s.State != mcpclient.Up || s.Restarts != 1 {
		t.Errorf("status is %+v", s)
	}
	if changes != 0 {
		t.Errorf("the catalog changed %d times", changes)
	}
}

// TestLongOutage: what a server offers goes when it stays away.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	spec := w.spec("web")
	spec.ProtocolVersion = "2025-11-25"
	r := newRigWith(t, mcpclient.WithOutage(100*time.Millisecond), spec)
	w.CloseClientConnections()
	w.Close()
	// A call notices, unless all is noticed and over already.
	_, _ = r.pipeline.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "web_echo"}})
	r.eventually("its tools to be gone", func() bool { return len(r.tools()) == 0 })
	if _, err := r.pipeline.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "web_echo"}}); err == nil {
		t.Error("a tool that is gone was called")
	}
}

// TestOldServers: servers that make nothing of the newest version's first request are spoken to in the older one.
func TestOldServers(t *testing.T) {
	t.Parallel()
	old := child("old", "old")
	old.StartTimeout = 3 * time.Second
	r := newRig(t, old, child("older", "older"))
	r.eventually("both, for a busy machine does not start a program in time at once", func() bool {
		return slices.Equal(r.tools(), []string{"old_relic", "older_fossil"})
	})
	if s := r.status("old"); s.Restarts != 0 || s.Protocol != "2025-11-25" {
		t.Errorf("it took more than one attempt: %+v", s)
	}
}

// TestAC16Apply: Servers are added, changed and removed while the others go on.
func TestAC16Apply(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("a", "plain"), child("b", "plain"))
	before := text(r.call("a_pid", "{}"))
	changed, disabled := child("c", "plain"), child("d", "plain")
	changed.Tools = mcpclient.Filter{Allow: []string{"e*"}, Deny: []string{"env*"}}
	disabled.Disabled = true
	apply := func(specs ...mcpclient.Spec) {
		t.Helper()
		if err := r.upstreams.Apply(specs); err != nil {
			t.Fatal(err)
		}
		r.ready()
	}
	apply(child("a", "plain"), changed, disabled)
	if got := slices.DeleteFunc(r.tools(), func(n string) bool { return strings.HasPrefix(n, "a_") }); !slices.Equal(got, []string{"c_echo", "c_everything"}) {
		t.Errorf("tools are %v", got)
	}
	if got := text(r.call("a_pid", "{}")); got != before {
		t.Errorf("a was started again: %s, then %s", before, got)
	}
	if s := r.status("d"); s.State != mcpclient.Disabled {
		t.Errorf("status is %+v", s)
	}
	changed.Prefix = "a_"
	if err := r.upstreams.Apply([]mcpclient.Spec{child("a", "plain"), changed}); err == nil ||
		!strings.Contains(err.Error(), "same prefix") {
		t.Errorf("equal prefixes: %v", err)
	}
	apply(changed) // the prefix is free now
	if _, ok := r.catalog.View().Tool("a_echo"); !ok || len(r.tools()) != 2 {
		t.Errorf("tools are %v", r.tools())
	}
	apply()
	if len(r.tools()) != 0 {
		t.Errorf("tools are %v", r.tools())
	}
}

// TestOtherLimits: limits change under a server that goes on, and a call in flight ends under those it began with.
func TestOtherLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	pid := text(r.call("plain_pid", "{}"))
	hanging := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := r.pipeline.Call(ctx,
			&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "plain_hang"}})
		hanging <- err
	}()
	r.eventually("the call to arrive", func() bool { return strings.Contains(r.log.String(), "hang begins") })
	r.upstreams.SetDefaults(manifest.Limits{Time: 100 * time.Millisecond, Input: 20}, nil, "")
	if err := r.upstreams.Apply([]mcpclient.Spec{child("plain", "plain")}); err != nil {
		t.Fatal(err)
	}
	if got := r.call("plain_echo", `{"text":"more than twenty bytes"}`); got.Outcome != pipeline.Size {
		t.Errorf("got %s %q", got.Outcome, text(got))
	}
	if got := r.call("plain_hang", "{}"); got.Outcome != pipeline.Timeout {
		t.Errorf("a later call: %+v", got)
	}
	cancel()
	if err := <-hanging; !errors.Is(err, context.Canceled) {
		t.Errorf("the call in flight ended before it was canceled: %v", err)
	}
	r.upstreams.SetDefaults(manifest.Limits{Time: time.Minute}, nil, "")
	if err := r.upstreams.Apply([]mcpclient.Spec{child("plain", "plain")}); err != nil {
		t.Fatal(err)
	}
	if got := text(r.call("plain_pid", "{}")); got != pid {
		t.Errorf("the server was started again: %s, then %s", pid, got)
	}
}

// TestAC16Follow: A changed file is applied; a broken one is reported and changes nothing.
func TestAC16Follow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	path := dir + "/mcp_servers.json"
	write := func(format string, args ...any) {
		t.Helper()
		if err := os.WriteFile(path, []byte(fmt.Sprintf(format, args...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {}}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.upstreams.Follow(ctx, path, dir)
	}()
	defer func() { cancel(); <-done }()
	write(`{"mcpServers": {"new": {"command": %q, "env": {%q: "plain"}}}}`, os.Args[0], asServer)
	r.eventually("the new server", func() bool { return slices.Contains(r.tools(), "new_echo") })
	write(`{"mcpServers": {"new": {"comand": "x"}}}`)
	r.eventually("the report", func() bool { return strings.Contains(r.log.String(), `did you mean \"command\"`) })
	if !slices.Contains(r.tools(), "new_echo") {
		t.Error("a broken file took the server away")
	}
	write(`{"mcpServers": {"new": {"comand": "x"}, "odd": {"evn": {}}, "beside": {"command": %q, "env": {%q: "plain"}}}}`,
		os.Args[0], asServer)
	r.eventually("the server beside", func() bool { return slices.Contains(r.tools(), "beside_echo") })
	if !slices.Contains(r.tools(), "new_echo") {
		t.Error("a broken entry took its server away")
	}
	for _, s := range r.upstreams.Status() {
		if s.Name == "odd" && (s.State != mcpclient.Down || !strings.Contains(s.Error, `did you mean "env"`)) || s.Name == "new" && s.State != mcpclient.Up {
			t.Errorf("got %+v", s)
		}
	}
}

// TestRename: a server that renames its tools changes the catalog.
func TestRename(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	r.call("plain_rename", "{}")
	r.eventually("the new name", func() bool { return slices.Contains(r.tools(), "plain_echo2") })
	if slices.Contains(r.tools(), "plain_echo") {
		t.Errorf("the old name is still there: %v", r.tools())
	}
	if got := text(r.call("plain_echo2", `{"text":"x"}`)); got != "again: x" {
		t.Errorf("got %q", got)
	}
}

// TestShadow: neither a server nor a plugin takes the place of the other, by name of a tool or of the source.
func TestShadow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	local, err := manifest.Parse([]byte("name: local\nversion: 1.0.0\ndescription: d\ntools: [{name: plain_echo, description: mine, inputSchema: {type: object}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.catalog.Put(catalog.Source{Name: "local"}, local); err != nil {
		t.Fatal(err)
	}
	if err := r.upstreams.Apply([]mcpclient.Spec{child("plain", "plain"), child("local", "plain")}); err != nil {
		t.Fatal(err)
	}
	r.ready()
	if tool, _ := r.catalog.View().Tool("plain_echo"); tool.Source.Name != "local" {
		t.Errorf("plain_echo is %s's", tool.Source.Name)
	}
	if s := r.status("plain"); s.State != mcpclient.Up ||
		!slices.ContainsFunc(s.Omitted, func(o string) bool { return strings.Contains(o, "local offers it already") }) {
		t.Errorf("status is %+v", s)
	}
	if tool, ok := r.catalog.View().Tool("local_echo"); !ok || tool.Source.Name != "local.upstream" ||
		r.status("local").State != mcpclient.Up {
		t.Errorf("the server with the plugin's name: %+v, %+v", tool, r.status("local"))
	}
	if !slices.Contains(r.tools(), "plain_pid") {
		t.Errorf("the other tools are not there: %v", r.tools())
	}
}

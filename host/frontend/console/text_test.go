package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// payload is a text that tries to become part of the page.
const payload = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'&` + "\u2028\u202e"

// TestTextStaysText: whatever guests, clients and vendors say arrives as text within JSON, and nothing of it could be
// taken for HTML or an event.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) {
		o.Upstreams = upstreams{{Name: payload, Server: payload, Error: payload, State: mcpclient.Down}}
		o.Settings = settings{configuration: func() console.Configuration {
			return console.Configuration{Items: []console.Setting{{Key: payload, Value: payload, Origin: payload}}}
		}}
		o.Problems = problems{{Kind: "policy", Text: payload}}
		o.Logins.Tokens = append(o.Logins.Tokens,
			bearer.Token{Name: "x", User: payload[:len(payload)-6], Hash: hashOf("x"), Role: "admin"})
	})
	w.offer("hostile", hostile, manifest.Tool{
		Name: "hostile", Title: manifest.Text{"en": "Title"},
		Description: manifest.Text{"en": payload[:len(payload)-6]},
		InputSchema: json.RawMessage(`{"type":"object","title":"<script>alert(1)</script>"}`),
	})
	e := &audit.Event{Type: audit.TypeCall, Outcome: payload,
		Subject: audit.Subject{User: payload, ClientName: payload}, Target: audit.Target{Name: payload},
		Decision: &audit.Decision{Action: "deny", Rule: payload}, Error: payload,
		Detail: map[string]string{payload: payload}, Arguments: json.RawMessage(`{"digest":"x","a":"<b>"}`)}
	if err := w.log.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.traffic.CallEnded(pipeline.Record{Method: payload, Name: payload, Source: payload, Rule: payload,
		Outcome: pipeline.Trap, Caller: pipeline.Caller{User: payload}})
	file := "<b>.wasm"
	if runtime.GOOS == "windows" {
		file = "b.wasm" // it has no such names
	}
	if err := os.WriteFile(filepath.Join(w.folder, file), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.host.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	b.post("login", map[string]string{"token": "x"})
	for _, path := range []string{
		"session", "overview", "plugins", "tools", "tools/hostile", "audit", "audit?text=script", "errors",
		"series/top", "configuration", "upstreams", "sessions",
		"plugins/%3Cscript%3E", "audit?from=%3Cscript%3E", "overview?%3Cscript%3E=1",
	} {
		checkText(t, path, b.get(path))
	}
	checkText(t, "call", b.post("tools/hostile/call", `{"arguments":{}}`))
	checkText(t, "unknown member", b.post("login", `{"<script>":1}`))
	if got := b.post("tools/hostile/call", `{"arguments":{}}`); !strings.Contains(got.body, `\u003cscript\u003ealert`) {
		t.Errorf("the result has lost its text: %s", got.body)
	}
}

var hostile = backend(func(_ context.Context, _ *catalog.Invocation) (*abi.Response, error) {
	return &abi.Response{
		Content: []abi.Content{{Type: payload, Text: payload, MIMEType: "text/html", URI: "javascript:alert(1)",
			Name: payload}}, StructuredContent: json.RawMessage(`{"a":"<script>"}`),
	}, nil
})

func checkText(t *testing.T, path string, got *answer) {
	t.Helper()
	if strings.ContainsAny(got.body, "<>&\u2028") {
		t.Errorf("%s: it has characters of HTML: %s", path, got.body)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json; charset=utf-8" ||
		got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: headers %v", path, got.header)
	}
	if !json.Valid([]byte(got.body)) {
		t.Errorf("%s: no JSON: %s", path, got.body)
	}
}

// TestEventsStayApart: nobody's text makes an event of its own.
func TestEventsStayApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	e := w.as(console.Viewer).watch(w.serve())
	w.traffic.CallEnded(pipeline.Record{Name: "a\n\nevent: end\ndata: {}\n\n", Outcome: pipeline.OK})
	w.traffic.CallEnded(pipeline.Record{Name: "second", Outcome: pipeline.OK})
	if data := e.expect("call"); !strings.Contains(data, `a\n\nevent: end`) {
		t.Errorf("first: %s", data)
	}
	if data := e.expect("call"); !strings.Contains(data, "second") {
		t.Errorf("second: %s", data)
	}
}

// TestFaultsStayInside: what fails within the host is in its log, and in no answer.
func TestFaultsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) {
		o.Consents = consents{load: func() (console.Consents, error) { return nil, os.ErrPermission }}
		o.Settings = settings{configuration: func() console.Configuration { panic("secret of the host") }}
	})
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Viewer)
	for _, path := range []string{"plugins/asking", "configuration"} {
		if got := b.get(path); got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret") ||
			strings.Contains(got.body, "permission denied") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := b.get("overview"); got.status < 500 || strings.Contains(got.body, "sql") {
		t.Errorf("without a store: %d %s", got.status, got.body)
	}
}

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

const offered = `
name: test
version: 1.0.0
description: d
tools:
  - name: free
    description: {en: d, ja: 無料}
    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
  - name: loose
    description: d
    inputSchema: {type: object}
  - name: odd
    description: d
    inputSchema: {type: object, properties: {$top: {type: integer}, 場所: {type: string}}}
  - name: strict
    description: d
    inputSchema: {type: object, properties: {filter: {type: object, properties: {path: {}}}}}
    outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
resources:
  - {uri: "test://fixed", name: fixed}
resourceTemplates:
  - {uriTemplate: "test://{id}/x", name: template}
prompts:
  - name: ask
    description: d
    arguments: [{name: topic, required: true}, {name: tone}]
retired:
  - {tool: old, instead: {en: Call free instead., ja: free を使ってください。}}
  - {prompt: older, instead: Use ask instead.}
  - {resource: "test://me/x", instead: "Read test://fixed instead."}
`

// backend responds with a function and stores the last invocation and its request.
type backend struct {
	answer     func() (*abi.Response, error)
	invocation catalog.Invocation
	last       abi.Request
}

func (b *backend) Call(_ context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	b.invocation, b.last = *invocation, *invocation.Request
	return b.answer()
}

// observer stores the last call and its record.
type observer struct {
	started int
	running *pipeline.Running
	last    pipeline.Record
}

func (o *observer) CallStarted(r *pipeline.Running) { o.started, o.running = o.started+1, r }
func (o *observer) CallEnded(r pipeline.Record)     { o.last = r }

type fixture struct {
	*pipeline.Pipeline
	catalog  *catalog.Catalog
	backend  backend
	observer observer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	m, err := manifest.Parse([]byte(offered))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	f := &fixture{catalog: c}
	if err := c.Put(catalog.Source{Name: "test", Prefix: "p_", Config: []byte(`{"k":1}`),
		Tenants: map[string][]byte{"acme": []byte(`{"k":2}`)}, Backend: &f.backend}, m); err != nil {
		t.Fatal(err)
	}
	f.Pipeline = pipeline.New(c, &pipeline.Options{Observer: &f.observer, Missing: func(_, name string) error {
		if name == "waiting" {
			return &pipeline.NotAllowedError{Name: name, Reason: "it waits"}
		}
		return nil
	}})
	return f
}

func text(s string) *abi.Response {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: s}}}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	exceeded := func(name string) error {
		return &limit.Error{Plugin: "test", Limit: name, Value: "1", Remedy: "wait"}
	}
	for _, test := range []struct {
		name, tool, arguments string
		response              *abi.Response
		err                   error
		outcome               pipeline.Outcome
		want                  string // in the result's text
	}{
		{"good", "p_free", `{"n":1}`, text("fine"), nil, pipeline.OK, "fine"},
		{"tool says no", "p_free", `{"n":1}`, &abi.Response{IsError: true, Content: text("no").Content}, nil,
			pipeline.ToolError, "no"},
		{"wrong type", "p_free", `{"n":"x"}`, nil, nil, pipeline.InvalidArguments,
			"the arguments of p_free are not valid"},
		{"wrong type under a listed name", "p_odd", `{"_top":"x"}`, nil, nil, pipeline.InvalidArguments,
			"the arguments of p_odd are not valid: _top: must be an integer"},
		{"missing", "p_free", ``, nil, nil, pipeline.InvalidArguments, "n"},
		{"unknown property", "p_free", `{"n":1,"m":2}`, nil, nil, pipeline.InvalidArguments, "m"},
		{"no JSON", "p_free", `{"n":`, nil, nil, pipeline.InvalidArguments, "the arguments of p_free are not valid"},
		{"structured", "p_strict", `{}`, &abi.Response{StructuredContent: json.RawMessage(`{"ok":true}`)}, nil,
			pipeline.OK, `{"ok":true}`},
		{"argument in another case", "p_strict", `{"filter":{"path":"a","PATH":"b"}}`, nil, nil,
			pipeline.InvalidArguments, `filter: unknown property "PATH": did you mean "path"?`},
		{"result in another case", "p_strict", `{}`, &abi.Response{StructuredContent: json.RawMessage(`{"ok":true,"OK":1}`)},
			nil, pipeline.OK, `{"ok":true,"OK":1}`},
		{"structured missing", "p_strict", `{}`, text("x"), nil, pipeline.InvalidResult, "no structured content"},
		{"structured wrong", "p_strict", `{}`, &abi.Response{StructuredContent: json.RawMessage(`{"ok":1}`)}, nil,
			pipeline.InvalidResult, "does not match its own output schema"},
		{"error needs none", "p_strict", `{}`, &abi.Response{IsError: true, Content: text("broken").Content}, nil,
			pipeline.ToolError, "broken"},
		{"timeout", "p_strict", `{}`, nil, exceeded(limit.Time), pipeline.Timeout, "passed its time limit"},
		{"memory", "p_strict", `{}`, nil, exceeded(limit.Memory), pipeline.Memory, "passed its memory limit"},
		{"queue", "p_strict", `{}`, nil, exceeded(limit.Queue), pipeline.Busy, "wait"},
		{"output", "p_strict", `{}`, nil, exceeded(limit.Output), pipeline.Size, "passed its output limit"},
		{"trap", "p_strict", `{}`, nil, &catalog.GuestError{Plugin: "test", Reason: "stopped"}, pipeline.Trap,
			"plugin test stopped"},
		{"no handler", "p_strict", `{}`, &abi.Response{Error: &abi.Error{Code: abi.CodeNotFound,
			Message: "no handler"}}, nil, pipeline.NotFound, "no handler"},
		{"host fault", "p_strict", `{}`, nil, errors.New("open /secret: disk"), pipeline.Internal,
			"internal error of the host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.backend.answer = func() (*abi.Response, error) { return test.response, test.err }
			result, err := f.Call(t.Context(), &pipeline.Call{Request: abi.Request{
				Method: abi.CallTool, Name: test.tool, Arguments: json.RawMessage(test.arguments),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if result.Outcome != test.outcome || !strings.Contains(fmt.Sprint(result.Response.Content), test.want) {
				t.Errorf("%s: %v", result.Outcome, result.Response.Content)
			}
			faulty := test.outcome == pipeline.Trap || test.outcome == pipeline.InvalidResult ||
				test.outcome == pipeline.Internal
			if strings.Contains(fmt.Sprint(result.Response.Content), f.observer.last.ID) != faulty {
				t.Errorf("with the ID of the call: %v, want %v", !faulty, faulty)
			}
			if failed := test.outcome != pipeline.OK; result.Response.IsError != failed {
				t.Errorf("IsError = %v", result.Response.IsError)
			}
			if r := f.observer.last; f.observer.started != 1 || r.Outcome != test.outcome || r.Name != test.tool ||
				r.Source != "test" {
				t.Errorf("record = %+v", r)
			}
		})
	}
}

func TestRequestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		request abi.Request
		outcome pipeline.Outcome
		want    string
	}{
		{"unknown tool", abi.Request{Method: abi.CallTool, Name: "free"}, pipeline.NotFound,
			`unknown tool "free": did you mean p_free?`},
		{"unknown tool, in Japanese", abi.Request{Method: abi.CallTool, Name: "無料"}, pipeline.NotFound,
			`unknown tool "無料": did you mean p_free?`},
		{"waiting tool", abi.Request{Method: abi.CallTool, Name: "waiting"}, pipeline.NotAllowed,
			"waiting is not allowed: it waits"},
		{"unknown resource", abi.Request{Method: abi.ReadResource, URI: "x://"}, pipeline.NotFound,
			`unknown resource "x://"`},
		{"retired resource", abi.Request{Method: abi.ReadResource, URI: "test://me/x"}, pipeline.NotFound,
			`unknown resource "test://me/x": Read test://fixed instead.`},
		{"retired prompt", abi.Request{Method: abi.GetPrompt, Name: "p_older"}, pipeline.NotFound,
			`unknown prompt "p_older": Use ask instead.`},
		{"unknown prompt", abi.Request{Method: abi.GetPrompt, Name: "ask"}, pipeline.NotFound,
			`unknown prompt "ask": did you mean p_ask?`},
		{"prompt without its argument", abi.Request{Method: abi.GetPrompt, Name: "p_ask"}, pipeline.InvalidArguments,
			"needs the argument topic"},
		{"prompt with another argument", abi.Request{Method: abi.GetPrompt, Name: "p_ask",
			Arguments: json.RawMessage(`{"topic":"x","top":"y"}`)},
			pipeline.InvalidArguments, "no argument top"},
		{"prompt with a number", abi.Request{Method: abi.GetPrompt, Name: "p_ask",
			Arguments: json.RawMessage(`{"topic":1}`)},
			pipeline.InvalidArguments, "an object of strings"},
		{"completion of nothing", abi.Request{Method: abi.Complete}, pipeline.InvalidArguments, "needs a ref"},
		{"completion of something else", abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/tool"},
			Argument: &abi.Argument{}},
			pipeline.InvalidArguments, "ref/prompt or ref/resource"},
		{"completion of an unknown prompt", abi.Request{Method: abi.Complete,
			Ref: &abi.Ref{Type: "ref/prompt", Name: "x"}, Argument: &abi.Argument{}},
			pipeline.NotFound, `unknown prompt "x"`},
		{"unknown method", abi.Request{Method: "tools/burn"}, pipeline.InvalidArguments, "tools/burn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			_, err := f.Call(t.Context(), &pipeline.Call{Request: test.request})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v", err)
			}
			if r := f.observer.last; r.Outcome != test.outcome || r.Name != "" && r.Source == "" {
				t.Errorf("record = %+v", r)
			}
		})
	}
}

// TestBackendRequest compares the request of the backend with that of the frontend.
func TestBackendRequest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		request abi.Request
		want    string
	}{
		{"tool", abi.Request{Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":1}`)},
			`{"method":"tools/call","name":"free","arguments":{"n":1},"config":{"k":1},"locale":"ja"}`},
		{"integer with a fraction", abi.Request{Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":5e0}`)},
			`{"method":"tools/call","name":"free","arguments":{"n":5},"config":{"k":1},"locale":"ja"}`},
		{"names as they are listed", abi.Request{Method: abi.CallTool, Name: "p_odd",
			Arguments: json.RawMessage(`{"_top":2.0,"__":"東京"}`)},
			`{"method":"tools/call","name":"odd","arguments":{"$top":2,"場所":"東京"},"config":{"k":1},"locale":"ja"}`},
		{"arguments that are null", abi.Request{Method: abi.CallTool, Name: "p_loose", Arguments: json.RawMessage(` null`)},
			`{"method":"tools/call","name":"loose","arguments":{},"config":{"k":1},"locale":"ja"}`},
		{"an optional argument that is null", abi.Request{Method: abi.CallTool, Name: "p_strict",
			Arguments: json.RawMessage(`{"filter":null}`)},
			`{"method":"tools/call","name":"strict","arguments":{},"config":{"k":1},"locale":"ja"}`},
		{"an argument of a prompt that is null", abi.Request{Method: abi.GetPrompt, Name: "p_ask",
			Arguments: json.RawMessage(`{"topic":"x","tone":null}`)},
			`{"method":"prompts/get","name":"ask","arguments":{"topic":"x"},"config":{"k":1},"locale":"ja"}`},
		{"resource", abi.Request{Method: abi.ReadResource, URI: "test://fixed"},
			`{"method":"resources/read","uri":"test://fixed","config":{"k":1},"locale":"ja"}`},
		{"template", abi.Request{Method: abi.ReadResource, URI: "test://7/x"},
			`{"method":"resources/read","uri":"test://7/x","template":"test://{id}/x","variables":{"id":"7"},"config":{"k":1},"locale":"ja"}`},
		{"prompt", abi.Request{Method: abi.GetPrompt, Name: "p_ask", Arguments: json.RawMessage(`{"topic":"x"}`)},
			`{"method":"prompts/get","name":"ask","arguments":{"topic":"x"},"config":{"k":1},"locale":"ja"}`},
		{"completion", abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "p_ask"},
			Argument: &abi.Argument{Name: "topic"}},
			`{"method":"completion/complete","ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"topic","value":""},"config":{"k":1},"locale":"ja"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.backend.answer = func() (*abi.Response, error) { return text("x"), nil }
			if _, err := f.Call(t.Context(), &pipeline.Call{Caller: pipeline.Caller{Locale: "ja"},
				Request: test.request}); err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(f.backend.last); string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestUpdates checks that only changes of resources of the source are announced, with the tenant of the call.
func TestUpdates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other, err := manifest.Parse([]byte("name: other\nversion: 1.0.0\nresources: [{uri: 'other://fixed', name: " +
		"fixed}]\nresourceTemplates: [{uriTemplate: 'other://{id}/x', name: x}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.catalog.Put(catalog.Source{Name: "other"}, other); err != nil {
		t.Fatal(err)
	}
	f.backend.answer = func() (*abi.Response, error) {
		for _, uri := range []string{"test://fixed", "test://7/x", "test://7/y", "other://fixed", "other://7/x", "",
			"\x00"} {
			f.backend.invocation.Updated(uri)
		}
		return nil, errors.New("it broke after that")
	}
	var got []string
	stop := f.WatchUpdates(func(tenant, uri string) { got = append(got, tenant+" "+uri) })
	call := &pipeline.Call{
		Caller: pipeline.Caller{Tenant: "acme"}, Request: abi.Request{Method: abi.CallTool, Name: "p_free",
			Arguments: json.RawMessage(`{"n":1}`)},
	}
	for range 2 {
		_, _ = f.Call(t.Context(), call)
		stop()
	}
	if want := "acme test://fixed, acme test://7/x"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestTenant checks that the backend gets the tenant and its configuration, and that sessions of tenants differ.
func TestTenant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) { return text("ok"), nil }
	for _, test := range []struct {
		caller pipeline.Caller
		config string
	}{
		{pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki", Session: "s"}, `{"k":2}`},
		{pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "zeta"}, `{"k":1}`},
		{pipeline.Caller{Frontend: pipeline.FrontendTerminal}, `{"k":1}`},
	} {
		if _, err := f.Call(t.Context(), &pipeline.Call{Caller: test.caller,
			Request: abi.Request{Method: abi.ReadResource, URI: "test://fixed"}}); err != nil {
			t.Fatal(err)
		}
		got := f.backend.invocation
		if got.Tenant != test.caller.Tenant || string(f.backend.last.Config) != test.config {
			t.Errorf("%+v: tenant %q, configuration %s", test.caller, got.Tenant, f.backend.last.Config)
		}
		if hasSession := got.Session != ""; hasSession != (test.caller.Session != "" ||
			test.caller.Frontend != pipeline.FrontendHTTP) {
			t.Errorf("%+v: session %q", test.caller, got.Session)
		}
	}
}

// TestRetiredTool checks that a call of a retired tool with a substitute is a tool error and not a protocol error.
func TestRetiredTool(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for locale, want := range map[string]string{"": "Call free instead.", "ja": "free を使ってください。"} {
		result, err := f.Call(t.Context(), &pipeline.Call{Caller: pipeline.Caller{Locale: locale},
			Request: abi.Request{Method: abi.CallTool, Name: "p_old"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Response; !got.IsError || got.Content[0].Text != `unknown tool "p_old": `+want ||
			result.Outcome != pipeline.NotFound {
			t.Errorf("%q: %s, %+v", locale, result.Outcome, got)
		}
	}
}

func TestPanicCostsOneCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) { panic("a fault of the host") }
	result, err := f.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_strict"}})
	if err != nil || result.Outcome != pipeline.Internal ||
		strings.Contains(fmt.Sprint(result.Response), "a fault of") {
		t.Errorf("result = %+v, %v", result, err)
	}
}

func TestCallerGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.backend.answer = func() (*abi.Response, error) {
		cancel()
		return nil, fmt.Errorf("plugin test: %w", ctx.Err())
	}
	_, err := f.Call(ctx, &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_strict"}})
	if !errors.Is(err, context.Canceled) || f.observer.last.Outcome != pipeline.Canceled {
		t.Errorf("error = %v, record = %+v", err, f.observer.last)
	}
}

func TestReplayedResultIsMarked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) {
		response := text("sunny")
		response.Replayed = true
		return response, nil
	}
	for locale, want := range map[string]string{"": "not live data", "en-GB": "not live data", "ja-JP": "記録"} {
		result, err := f.Call(t.Context(), &pipeline.Call{Caller: pipeline.Caller{Locale: locale}, Request: abi.Request{
			Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":1}`)}})
		if err != nil || len(result.Response.Content) != 2 || !strings.Contains(result.Response.Content[1].Text, want) {
			t.Errorf("%s: %+v, %v", locale, result, err)
		}
	}
}

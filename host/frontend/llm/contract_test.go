package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/openai"
	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/toolschema"
)

const testKey = "key-made-up-for-tests"

// side is the fake provider of a test.
type side struct {
	http.Handler
	faults   *fault.Plan
	requests *script.Requests
}

// providers lists the fakes for the contract tests. Their models think where a step says so.
var providers = map[string]func(*script.Script) side{
	Anthropic: func(steps *script.Script) side {
		s := &anthropic.Server{Script: steps, Key: testKey, Window: 20_000}
		return side{s, &s.Faults, &s.Requests}
	},
	OpenAI: func(steps *script.Script) side {
		s := &openai.Server{Script: steps, Key: testKey, Window: 20_000, Thinking: []string{"thinker"}}
		return side{s, &s.Faults, &s.Requests}
	},
	OpenAICompatible: func(steps *script.Script) side {
		s := &openai.Server{Script: steps, Key: testKey, Window: 20_000, Compatible: true}
		return side{s, &s.Faults, &s.Requests}
	},
}

// world is a Chain of one model and its fake provider.
type world struct {
	t *testing.T
	side
	chain *Chain
	log   *testlog.Buffer

	mu   sync.Mutex // guards completions
	seen []Completion
}

func newWorld(t *testing.T, provider string, steps ...script.Step) *world {
	t.Helper()
	w := &world{t: t, side: providers[provider](&script.Script{Steps: steps}), log: &testlog.Buffer{}}
	w.chain = w.newChain(w.Handler, spec(t, provider))
	return w
}

// spec returns a Spec with its key in a file.
func spec(t *testing.T, provider string) Spec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(testKey), 0o600); err != nil {
		t.Fatal(err)
	}
	base := map[string]string{Anthropic: "https://model.example/", OpenAI: "https://model.example/v1",
		OpenAICompatible: "https://model.example/v1"}
	return Spec{Name: "first", Provider: provider, Model: "thinker", BaseURL: base[provider],
		Key: secret.Source{File: path}, ContextWindow: 20_000,
		Prices: Prices{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
}

func (w *world) newChain(handler http.Handler, specs ...Spec) *Chain {
	w.t.Helper()
	chain, err := New(Options{Specs: specs, Observe: w.observe,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range chain.models {
		m.vendor = newVendor(&m.spec, &http.Client{Transport: &transport{inMemory{handler}, m.spec.Timeout}})
	}
	return chain
}

func (w *world) observe(c Completion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, c)
}

// complete returns the response, the streamed parts and the error.
func (w *world) complete(r *Request) (*Response, []Delta, error) {
	w.t.Helper()
	var deltas []Delta
	response, err := w.chain.Complete(w.t.Context(), r, func(d Delta) { deltas = append(deltas, d) })
	return response, deltas, err
}

// must fails the test if complete returns an error.
func (w *world) must(r *Request) (*Response, []Delta) {
	w.t.Helper()
	response, deltas, err := w.complete(r)
	if err != nil {
		w.t.Fatalf("%v (%v)\n%s", err, errors.Unwrap(errors.Unwrap(err)), w.log.String())
	}
	return response, deltas
}

// asks returns a request with one message.
func asks(text string, tools ...Tool) *Request {
	return &Request{System: "Answer.", Messages: []Message{{Role: RoleUser, Text: text}}, Tools: tools}
}

func streamed(deltas []Delta) string {
	var text strings.Builder
	for _, d := range deltas {
		text.WriteString(d.Text)
	}
	return text.String()
}

var weatherTool = Tool{Name: "get_weather", Description: "天気予報を返します。", Schema: json.RawMessage(
	`{"type":"object","properties":{"location":{"type":"string"},"date":{"type":"string","default":"today"}},"required":["location"]}`)}

// eachProvider runs a test for every provider.
func eachProvider(t *testing.T, test func(t *testing.T, provider string)) {
	t.Helper()
	for _, provider := range []string{Anthropic, OpenAI, OpenAICompatible} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, provider)
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider, script.Step{When: regexp.MustCompile("warm"), Say: "x"},
			script.Step{Say: "こんにちは。 How are you?"})
		w.must(asks("warm up")) // before it a local model may be one that thinks aloud
		w.seen = nil
		response, deltas := w.must(asks("hello"))
		if response.Text != "こんにちは。 How are you?" || response.Stop != StopEnd || response.Calls != nil {
			t.Errorf("%+v", response)
		}
		if len(deltas) < 3 || streamed(deltas) != response.Text {
			t.Errorf("streamed %v", deltas)
		}
		if response.Name != "first" || response.Model != "thinker" || response.Usage.Output == 0 ||
			response.Usage.Input == 0 {
			t.Errorf("%+v", response)
		}
		if want := w.chain.models[0].spec.Prices.Cost(response.Usage); response.Cost != want || want <= 0 {
			t.Errorf("cost %v, want %v", response.Cost, want)
		}
		if len(w.seen) != 1 || w.seen[0].Outcome != Completed || w.seen[0].Usage != response.Usage ||
			w.seen[0].Attempts == 0 || w.seen[0].FirstText == 0 {
			t.Errorf("completions %+v", w.seen)
		}
	})
}

// weatherRound runs a question, a call with its result, and the answer.
func weatherRound(t *testing.T, provider string) *world {
	t.Helper()
	w := newWorld(t, provider,
		script.Step{When: regexp.MustCompile("天気"), Call: []script.Call{
			{Tool: "get_weather", Arguments: `{"location":"東京"}`}, {Tool: "get_weather",
				Arguments: `{"location":"大阪"}`}}, Say: "調べます。"},
		script.Step{After: regexp.MustCompile("晴れ"), Say: "東京は晴れです: ${result}"})
	r := asks("東京と大阪の天気を教えて", weatherTool)
	response, _ := w.must(r)
	if response.Stop != StopTools || len(response.Calls) != 2 || response.Text != "調べます。" {
		t.Fatalf("%+v", response)
	}
	results := make([]Result, len(response.Calls))
	for i, call := range response.Calls {
		want := []string{`{"location":"東京"}`, `{"location":"大阪"}`}[i]
		if call.Name != "get_weather" || string(call.Arguments) != want || call.ID == "" || call.Invalid != "" {
			t.Errorf("call %+v", call)
		}
		results[i] = Result{CallID: call.ID, Text: "晴れ"}
	}
	r.Messages = append(r.Messages, response.Message(), Message{Role: RoleUser, Results: results})
	response, _ = w.must(r)
	if response.Text != "東京は晴れです: 晴れ\n晴れ" || response.Stop != StopEnd {
		t.Errorf("%+v", response)
	}
	return w
}

// firstBody decodes the body of the first request.
func (w *world) firstBody(into any) {
	w.t.Helper()
	if err := json.Unmarshal(w.requests.All()[0].Body, into); err != nil {
		w.t.Fatal(err)
	}
}

func TestAC8ToolsReachTheModel(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) { weatherRound(t, provider) })
}

func TestAC9OpenAIFunctionCalling(t *testing.T) {
	t.Parallel()
	w := weatherRound(t, OpenAI)
	var body struct {
		Tools []struct {
			Type, Name, Description string
			Parameters              map[string]any
			Strict                  *bool
		}
	}
	w.firstBody(&body)
	tool := body.Tools[0]
	if tool.Type != "function" || tool.Name != weatherTool.Name || tool.Description != weatherTool.Description ||
		tool.Strict == nil || *tool.Strict {
		t.Errorf("%+v", tool)
	}
	checkWeatherSchema(t, tool.Parameters)
}

func TestAC10AnthropicToolUse(t *testing.T) {
	t.Parallel()
	w := weatherRound(t, Anthropic)
	var body struct {
		Tools []struct {
			Name, Description string
			InputSchema       map[string]any `json:"input_schema"`
		}
	}
	w.firstBody(&body)
	tool := body.Tools[0]
	if tool.Name != weatherTool.Name || tool.Description != weatherTool.Description {
		t.Errorf("%+v", tool)
	}
	checkWeatherSchema(t, tool.InputSchema)
	if header := w.requests.All()[0].Header; header.Get("Anthropic-Version") == "" ||
		header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("headers %v", header)
	}
}

func TestAC11LocalServerFunctionCalling(t *testing.T) {
	t.Parallel()
	w := weatherRound(t, OpenAICompatible)
	var body struct {
		Tools []struct {
			Type     string
			Function struct {
				Name       string
				Parameters map[string]any
			}
		}
	}
	w.firstBody(&body)
	if body.Tools[0].Type != "function" || body.Tools[0].Function.Name != weatherTool.Name {
		t.Errorf("%+v", body)
	}
	checkWeatherSchema(t, body.Tools[0].Function.Parameters)
	if path := w.requests.All()[0].Path; path != "/v1/chat/completions" {
		t.Errorf("path %s", path)
	}
}

func TestAC11LocalServerWithoutToolCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, OpenAICompatible, script.Step{Say: "こんにちは"})
	if response, _ := w.must(asks("hello", weatherTool)); response.Text != "こんにちは" || len(response.Calls) != 0 ||
		response.Stop != StopEnd {
		t.Errorf("%+v", response)
	}
}

func checkWeatherSchema(t *testing.T, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if schema["type"] != "object" || properties["location"] == nil || properties["date"] == nil {
		t.Errorf("schema %v", schema)
	}
}

func TestThoughtsComeBack(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{Anthropic, OpenAI} { // the fakes insist
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, provider,
				script.Step{When: regexp.MustCompile("天気"), Think: "I need the forecast.", Say: "One moment.",
					Call: []script.Call{{Tool: "get_weather", Arguments: `{"location":"東京"}`}}},
				script.Step{After: regexp.MustCompile("."), Say: "It rains."})
			r := asks("天気は？", weatherTool)
			r.Cache = true
			response, deltas := w.must(r)
			if response.State == nil || strings.Contains(streamed(deltas)+response.Text, "forecast") {
				t.Fatalf("%+v %v", response, deltas)
			}
			r.Messages = append(r.Messages, response.Message(),
				Message{Role: RoleUser, Results: []Result{{CallID: response.Calls[0].ID, Text: "rain"}}})
			if response, _ = w.must(r); response.Text != "It rains." {
				t.Errorf("%+v", response)
			}
			r.Messages[1].State = nil
			if _, _, err := w.complete(r); !errors.Is(err, Invalid) {
				t.Errorf("without its thoughts: %v", err)
			}
			r.Messages[1].State = &State{origin: origin{provider, "another"},
				parts: []json.RawMessage{[]byte(`{"type":"odd"}`)}}
			if _, _, err := w.complete(r); !errors.Is(err, Invalid) ||
				strings.Contains(string(w.requests.All()[3].Body), "odd") {
				t.Errorf("with another model's: %v", err)
			}
		})
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		step script.Step
		want Stop
	}{
		{script.Step{Say: "a", Stop: script.Length}, StopLength},
		{script.Step{Say: "I will not.", Stop: script.Refusal}, StopRefusal},
		{script.Step{Say: "a", Stop: script.Filtered}, StopFiltered},
		{script.Step{Call: []script.Call{{Tool: "get_weather", Arguments: `{"loc`}}, Stop: script.Length}, StopLength},
		{script.Step{Call: []script.Call{{Tool: "get_weather", Arguments: ``}}, Stop: script.Length}, StopLength},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			response, _ := newWorld(t, provider, test.step).must(asks("hello", weatherTool))
			want := test.want
			if provider == Anthropic && want == StopFiltered {
				want = StopRefusal // which is all that the API says
			}
			if response.Stop != want || response.Text != test.step.Say {
				t.Errorf("%+v, want %s", response, want)
			}
			for _, call := range response.Calls {
				if call.Invalid == "" {
					t.Errorf("a call that was cut off: %+v", call)
				}
			}
		})
	}
}

// TestAbsentArguments: models write no arguments in several ways.
func TestAbsentArguments(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{"", " ", "null", "{}"} {
		if call := newCall("1", "a", arguments); call.Invalid != "" || string(call.Arguments) != "{}" {
			t.Errorf("%q: %+v", arguments, call)
		}
	}
}

func TestMalformedArguments(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{"location":`, `["東京"]`, `{"a":1}{"b":2}`, `{"location":"東京"`, "\xff"} {
		eachProvider(t, func(t *testing.T, provider string) {
			w := newWorld(t, provider,
				script.Step{When: regexp.MustCompile("天気"),
					Call: []script.Call{{Tool: "get_weather", Arguments: arguments}}},
				script.Step{After: regexp.MustCompile("."), Say: "sorry"})
			r := asks("天気", weatherTool)
			response, _ := w.must(r)
			if len(response.Calls) != 1 || response.Calls[0].Invalid == "" ||
				string(response.Calls[0].Arguments) != "{}" ||
				response.Stop != StopTools {
				t.Fatalf("%s: %+v", arguments, response)
			}
			call := response.Calls[0]
			r.Messages = append(r.Messages, response.Message(),
				Message{Role: RoleUser, Results: []Result{{CallID: call.ID, Text: call.Invalid, IsError: true}}})
			if response, _ = w.must(r); response.Text != "sorry" {
				t.Errorf("%+v", response)
			}
		})
	}
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider,
			script.Step{When: regexp.MustCompile("天気"),
				Call: []script.Call{{Tool: "unknown_tool", Arguments: `{"a":1}`}}},
			script.Step{After: regexp.MustCompile("."), Say: "sorry"})
		r := asks("天気", weatherTool)
		response, _ := w.must(r)
		if response.Calls[0].Name != "unknown_tool" || string(response.Calls[0].Arguments) != `{"a":1}` {
			t.Errorf("%+v", response)
		}
		r.Messages = append(r.Messages, response.Message(),
			Message{Role: RoleUser,
				Results: []Result{{CallID: response.Calls[0].ID, Text: "There is no such tool.", IsError: true}}})
		w.must(r)
	})
}

func TestNoTools(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider, script.Step{Call: []script.Call{{Tool: "get_weather", Arguments: `{}`}}})
		r := asks("hello", weatherTool)
		r.NoTools = true
		if response, _ := w.must(r); len(response.Calls) != 0 || response.Text == "" {
			t.Errorf("%+v", response)
		}
		r.Tools = nil
		w.must(r)
	})
}

// TestNames sends tool names that no provider accepts, and argument names as MCP clients see them.
func TestNames(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		long := strings.Repeat("long", 50)
		schema := toolschema.Listed(json.RawMessage(
			`{"type":"object","properties":{"場所":{"type":"string"},"日付":{"type":"string"},"ok":{"type":"integer"}},"required":["場所"]}`))
		tools := []Tool{{Name: "天気.東京", Schema: schema}, {Name: "天気.大阪", Schema: schema},
			{Name: long + "a", Schema: schema},
			{Name: long + "b", Schema: schema}, {Name: "plain", Schema: schema}}
		w := newWorld(t, provider)
		sent := w.chain.models[0].tools.adaptAll(tools)
		var steps []script.Step
		want := ""
		for _, tool := range sent.tools {
			arguments := map[string]any{}
			for key := range tool.parameters.schema["properties"].(map[string]any) {
				arguments[key] = "x"
			}
			text, err := json.Marshal(arguments)
			if err != nil {
				t.Fatal(err)
			}
			want = string(text)
			steps = append(steps, script.Step{Call: []script.Call{{Tool: tool.name, Arguments: want}}, Times: 1},
				script.Step{After: regexp.MustCompile("."), Say: "done", Times: 1})
		}
		w = newWorld(t, provider, steps...)
		for _, tool := range tools {
			r := asks("hello", tools...)
			response, _ := w.must(r)
			call := response.Calls[0]
			if call.Name != tool.Name || compact(t, call.Arguments) != want {
				t.Errorf("%s %s, want %s %s", call.Name, call.Arguments, tool.Name, want)
			}
			r.Messages = append(r.Messages, response.Message(),
				Message{Role: RoleUser, Results: []Result{{CallID: call.ID, Text: "ok"}}})
			w.must(r)
		}
	})
}

// compact sorts the members of an object.
func compact(t *testing.T, object json.RawMessage) string {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(object, &value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestInterruptedConversations sends conversations as interruptions may have left them.
func TestInterruptedConversations(t *testing.T) {
	t.Parallel()
	call := func(id string) Call { return Call{ID: id, Name: "gone.tool", Arguments: json.RawMessage(`{"a":1}`)} }
	user := func(text string) Message { return Message{Role: RoleUser, Text: text} }
	for _, test := range []struct {
		name     string
		messages []Message
		valid    bool
	}{
		{"two of the user's", []Message{user("a"), user("b")}, true},
		{"two of the model's",
			[]Message{user("a"), {Role: RoleAssistant, Text: "b"}, {Role: RoleAssistant, Text: "c"}, user("d")}, true},
		{"a blank one", []Message{user("a"), {Role: RoleAssistant, Text: " \n"}, user("b"), user("")}, true},
		{"a call without its result",
			[]Message{user("a"), {Role: RoleAssistant, Calls: []Call{call("1"), call("2")}},
				{Role: RoleUser, Results: []Result{{CallID: "2", Text: "r"}}}}, true},
		{"a call at the end", []Message{user("a"), {Role: RoleAssistant, Calls: []Call{call("1")}}}, true},
		{"a call and then a text",
			[]Message{user("a"), {Role: RoleAssistant, Text: "t", Calls: []Call{call("1")}}, user("b")}, true},
		{"two rounds in one",
			[]Message{user("a"), {Role: RoleAssistant, Calls: []Call{call("1")}},
				{Role: RoleAssistant, Calls: []Call{call("2")}}}, true},
		{"results and a text",
			[]Message{user("a"), {Role: RoleAssistant, Calls: []Call{call("1")}},
				{Role: RoleUser, Results: []Result{{CallID: "1", Text: ""}}, Text: "go on"}}, true},
		{"a result without its call",
			[]Message{user("a"), {Role: RoleUser, Results: []Result{{CallID: "9", Text: "r"}}}}, true},
		{"nothing", nil, false},
		{"the model at the end", []Message{user("a"), {Role: RoleAssistant, Text: "b"}}, false},
		{"the model at the beginning", []Message{{Role: RoleAssistant, Text: "b"}, user("a")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, func(t *testing.T, provider string) {
				w := newWorld(t, provider)
				_, _, err := w.complete(&Request{Messages: test.messages})
				if test.valid != (err == nil) || !test.valid && !errors.Is(err, Invalid) {
					t.Errorf("%v %v", err, errors.Unwrap(err))
				}
			})
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind     string
		want     Kind
		attempts int
	}{
		{"rate_limit", RateLimited, 4}, {"overloaded", Overloaded, 4}, {"server", Unavailable, 4},
		{"context", ContextWindow, 1}, {"key", Auth, 1}, {"credit", Auth, 1}, {"invalid", Invalid, 1},
		{"model", Invalid,
			1}, {"policy", Refused, 1},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, provider, script.Step{Fail: &script.Failure{Kind: test.kind}})
				_, deltas, err := w.complete(asks("a secret of the conversation"))
				var e *Error
				if !errors.As(err, &e) || !errors.Is(err, test.want) || e.Name != "first" || e.Status < 400 ||
					len(deltas) > 0 {
					t.Fatalf("%s: %+v", test.kind, err)
				}
				// OpenAI's is told first not to send "include"
				if got := len(w.requests.All()); got > test.attempts+1 || got < test.attempts {
					t.Errorf("%s: %d requests, want %d", test.kind, got, test.attempts)
				}
				if len(w.seen) != 1 || w.seen[0].Outcome != string(test.want) {
					t.Errorf("completions %+v", w.seen)
				}
				for _, text := range []string{err.Error(), w.log.String()} {
					if strings.Contains(text, testKey) || strings.Contains(text, "secret of") {
						t.Errorf("shown or logged: %q", text)
					}
				}
			})
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, provider,
				script.Step{Fail: &script.Failure{Kind: "rate_limit", RetryAfter: "7"}, Times: 1},
				script.Step{Fail: &script.Failure{Kind: "server"}, Times: 1},
				script.Step{Say: "ok"})
			w.faults.Add(fault.Fault{Drop: true, Times: 1})
			begin := time.Now()
			if response, _ := w.must(asks("hello")); response.Text != "ok" {
				t.Errorf("%+v", response)
			}
			if took := time.Since(begin); took < 8*time.Second || took > 12*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
}

func TestRetryAfterIsTooLong(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, provider, script.Step{Fail: &script.Failure{Kind: "rate_limit", RetryAfter: "600"}})
			begin := time.Now()
			_, _, err := w.complete(asks("hello"))
			var e *Error
			if !errors.As(err, &e) || e.RetryAfter != 10*time.Minute || time.Since(begin) > 0 {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	})
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		step script.Step
		kind Kind
	}{
		{"cut off", script.Step{Say: "a long answer that is cut off", Cut: true}, Unavailable},
		{"an error in the middle",
			script.Step{Say: "a long answer", Fail: &script.Failure{Kind: "server", Streamed: true}}, Unavailable},
		{"overload in the middle",
			script.Step{Say: "a long answer", Fail: &script.Failure{Kind: "overloaded", Streamed: true}}, Overloaded},
		{"cut off in a call",
			script.Step{Call: []script.Call{{Tool: "get_weather", Arguments: `{"location":"東京都千代田区"}`}},
				Cut: true}, Unavailable},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, provider, script.Step{When: regexp.MustCompile("warm"), Say: "x"}, test.step)
				w.must(asks("warm up"))
				before := len(w.requests.All())
				_, deltas, err := w.complete(asks("hello", weatherTool))
				if !errors.Is(err, test.kind) || (len(deltas) > 0) != (test.step.Say != "") {
					t.Errorf("%s: %v, streamed %v", test.name, err, deltas)
				}
				want := 4
				if len(deltas) > 0 {
					want = 1
				}
				if n := len(w.requests.All()) - before; n != want {
					t.Errorf("%s: %d requests after %v was shown", test.name, n, deltas)
				}
				before = len(w.requests.All())
				if _, err := w.chain.Complete(t.Context(), asks("hello", weatherTool), nil); !errors.Is(err, test.kind) {
					t.Errorf("%s: %v", test.name, err)
				}
				if n := len(w.requests.All()) - before; n != 4 {
					t.Errorf("%s: %d requests, though nothing was shown", test.name, n)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, provider, script.Step{Say: "a long answer that nobody waits for", Pace: time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := w.chain.Complete(ctx, asks("hello"), func(Delta) {})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3500*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
			if w.seen[0].Outcome != Canceled {
				t.Errorf("%+v", w.seen)
			}
		})
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, provider,
				script.Step{When: regexp.MustCompile("slow"), Say: "slow, but steady", Pace: 4 * time.Minute},
				script.Step{Say: "never", Wait: 6 * time.Minute})
			if response, _ := w.must(asks("slow")); response.Text != "slow, but steady" {
				t.Errorf("%+v", response)
			}
			_, _, err := w.complete(asks("hello"))
			if !errors.Is(err, Unavailable) || !errors.Is(err, errIdle) ||
				!strings.Contains(err.Error(), "sent nothing") {
				t.Errorf("%v", err)
			}
		})
	})
}

// TestUnexpectedResponses checks the errors for responses that are not the API's.
func TestUnexpectedResponses(t *testing.T) {
	t.Parallel()
	answer := func(status int, kind, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "https://elsewhere.example/v1")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	for _, test := range []struct {
		name    string
		handler http.Handler
		kind    Kind
		text    string
	}{
		{"a web page", answer(200, "text/html", "<html>"), Unavailable, "baseUrl"},
		{"an error as a success", answer(200, "application/json",
			`{"error":"Unexpected endpoint. Returning 200 anyway"}`),
			Unavailable, "baseUrl"},
		{"a redirect", answer(308, "text/html", ""), Unavailable, "redirects"},
		{"an empty stream", answer(200, "text/event-stream", ""), Unavailable, "broke off"},
		{"no JSON in a stream", answer(200, "text/event-stream", "event: message_start\ndata: oops\n\n"),
			Unavailable, "violates the API"},
		{"a gateway's error", answer(502, "text/html", "<html>"), Unavailable, "502"},
		{"a wrong path", answer(404, "text/plain", "404 page not found"), Invalid, "baseUrl"},
		{"too much", answer(200, "text/event-stream",
			strings.Repeat(": "+strings.Repeat("comment", 9000)+"\n", maxAnswer/60_000)), Unavailable, "larger than"},
		{"a line that is too long", answer(200, "text/event-stream", strings.Repeat("x", 40<<20)), Unavailable,
			"failed"},
		{"a full error", answer(400, "application/json", `{"error":`+strings.Repeat("[", 100_000)), Invalid, "rejects the request"},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, provider)
				w.chain = w.newChain(test.handler, spec(t, provider))
				if _, _, err := w.complete(asks("hello")); !errors.Is(err, test.kind) ||
					!strings.Contains(err.Error(), test.text) {
					t.Errorf("%s: %v", test.name, err)
				}
			})
		})
	}
}

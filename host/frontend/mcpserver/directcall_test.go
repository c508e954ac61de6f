package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// answers are tools by what they answer.
var answers = map[string]func(*pipeline.Call) (*pipeline.Result, error){
	"echo": func(call *pipeline.Call) (*pipeline.Result, error) {
		c := call.Caller
		return ok(text("%s %q %q %s %s %t", call.Request.Name, call.Request.Arguments, c.Frontend, c.Session, c.Locale,
			call.Progress != nil))
	},
	"empty": func(*pipeline.Call) (*pipeline.Result, error) { return ok(new(abi.Response)) },
	"text": func(*pipeline.Call) (*pipeline.Result, error) {
		return ok(text("a <b> & \"c\"\n\u2028\x00\\ \xff 箱"))
	},
	"failed": func(*pipeline.Call) (*pipeline.Result, error) { return ok(failedTool("it failed")) },
	"blocks": func(*pipeline.Call) (*pipeline.Result, error) {
		priority, size := 0.5, int64(3)
		return ok(&abi.Response{Replayed: true, Content: []abi.Content{
			{Type: abi.Text, Text: "x", Annotations: &abi.Annotations{Audience: []string{"user"}, Priority: &priority}},
			{Type: abi.Image, MIMEType: "image/png", Data: []byte{1, 2}},
			{Type: abi.Audio, MIMEType: "audio/wav", Data: []byte{3}},
			{Type: abi.ResourceLink, URI: "test://x", Name: "x", Size: &size},
			{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "test://y", Data: []byte{}}},
			{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "test://z", Text: "<z>"}},
		}})
	},
	"object": func(*pipeline.Call) (*pipeline.Result, error) {
		return ok(&abi.Response{StructuredContent: json.RawMessage("{\r\n \"a\": [\"x y\",\t1e2 ]\n}"),
			Content: text("a").Content})
	},
	"array": func(*pipeline.Call) (*pipeline.Result, error) {
		return ok(&abi.Response{StructuredContent: json.RawMessage(` [1,2]`)})
	},
	"long": func(*pipeline.Call) (*pipeline.Result, error) {
		return ok(text("%s", strings.Repeat("0123456789\n", 10_000)))
	},
	"panics": func(*pipeline.Call) (*pipeline.Result, error) { panic("secret") },
	"fault":  func(*pipeline.Call) (*pipeline.Result, error) { return nil, errors.New("secret") },
	"unknown": func(*pipeline.Call) (*pipeline.Result, error) {
		return nil, &pipeline.NotFoundError{Kind: "tool", Name: "x"}
	},
	"notAllowed": func(*pipeline.Call) (*pipeline.Result, error) {
		return nil, &pipeline.NotAllowedError{Name: "x", Reason: "no"}
	},
	"denied": func(*pipeline.Call) (*pipeline.Result, error) {
		return nil, &pipeline.NotAllowedError{Name: "x", Reason: "no", Rule: "never"}
	},
	"invalid": func(*pipeline.Call) (*pipeline.Result, error) { return nil, &pipeline.InvalidError{Reason: "no"} },
	"limit": func(*pipeline.Call) (*pipeline.Result, error) {
		return nil, &limit.Error{Plugin: "p", Limit: "time"}
	},
	"guest": func(*pipeline.Call) (*pipeline.Result, error) {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: "bad"}
	},
	"canceled": func(*pipeline.Call) (*pipeline.Result, error) { return nil, context.Canceled },
}

// serveAnswers returns a server with a tool for each of the answers and one more whose argument is repeated in a
// header.
func serveAnswers(t testing.TB, options *Options) *Server {
	t.Helper()
	m := &manifest.Manifest{Name: "test"}
	for name := range answers {
		m.Tools = append(m.Tools, tool(name))
	}
	header := tool("header")
	header.InputSchema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}`)
	m.Tools = append(m.Tools, header)
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		if answer, ok := answers[call.Request.Name]; ok {
			return answer(call)
		}
		return answers["echo"](call)
	})
	return newServer(t, offerAll(t, nil, m), calls, options)
}

// countBySDK counts the calls that the SDK takes.
func countBySDK(s *Server) *atomic.Int64 {
	count := new(atomic.Int64)
	s.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == abi.CallTool {
				count.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	return count
}

// aside makes a call one for the SDK: a member that nobody knows changes nothing else.
func aside(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	text := strings.Replace(string(body), `"method":`, `"unusual":0,"method":`, 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return r
}

func methodOf(version string) string { return nameOf(version, abi.CallTool) }

// nameOf is the value of a header that only 2026-07-28 has.
func nameOf(version, name string) string {
	if version >= withoutSessions {
		return name
	}
	return ""
}

// callBodies are calls of the tool echo in one protocol version, right and wrong.
func callBodies(version string) map[string]string {
	meta := metaOf(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`)
	good := `"_meta":` + meta(version)
	withID := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo",` + good + `}}`
	}
	withParams := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	withMeta := func(meta string) string { return withParams(`{"name":"echo","_meta":` + meta + `}`) }
	plain := withID("1")
	bodies := map[string]string{
		"id 0":                     withID("0"),
		"id -7":                    withID("-7"),
		"id with 15 digits":        withID("123456789012345"),
		"id too large for a float": withID("9007199254740993"),
		"id with a fraction":       withID("1.5"),
		"id 1.0":                   withID("1.0"),
		"id 1e3":                   withID("1e3"),
		"id -0":                    withID("-0"),
		"id null":                  withID("null"),
		"id true":                  withID("true"),
		"id object":                withID("{}"),
		"text id":                  withID(`"a"`),
		"empty id":                 withID(`""`),
		"id with escapes":          withID(`"\u0061\n\"箱"`),
		"no id":                    strings.Replace(plain, `"id":1,`, "", 1),
		"two ids":                  strings.Replace(plain, `"id":1,`, `"id":1,"id":2,`, 1),
		"members in another order": `{"params":{` + good +
			`,"name":"echo"},"method":"tools/call","id":1,"jsonrpc":"2.0"}`,
		"white space":           " \r\n\t" + strings.ReplaceAll(plain, `,"`, "\n,\t\"") + " \n",
		"JSON-RPC 1.0":          strings.Replace(plain, "2.0", "1.0", 1),
		"no JSON-RPC version":   strings.Replace(plain, `"jsonrpc":"2.0",`, "", 1),
		"another method":        strings.Replace(plain, "tools/call", "tools/Call", 1),
		"method with an escape": strings.Replace(plain, "tools/call", `tools\/call`, 1),
		"member with an escape": strings.Replace(plain, `"method"`, `"m\u0065thod"`, 1),
		"unknown member":        strings.Replace(plain, `"id":1`, `"id":1,"x":1`, 1),
		"a result too":          strings.Replace(plain, `"id":1`, `"id":1,"result":{}`, 1),
		"batch":                 "[" + plain + "]",
		"two messages":          plain + plain,
		"cut":                   plain[:len(plain)-1],
		"byte order mark":       "\ufeff" + plain,
		"not UTF-8":             strings.Replace(plain, `"name"`, "\"x\":\"\xff\",\"name\"", 1),
		"nothing":               "",
		"null":                  "null",
		"no params":             `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		"params null":           withParams("null"),
		"params array":          withParams("[]"),
		"no name":               withParams("{" + good + "}"),
		"name null":             withParams(`{"name":null,` + good + `}`),
		"name number":           withParams(`{"name":1,` + good + `}`),
		"name twice":            withParams(`{"name":"echo","name":"echo",` + good + `}`),
		"name with an escape":   withParams(`{"name":"\u0065cho",` + good + `}`),
		"name in capitals":      withParams(`{"Name":"echo",` + good + `}`),
		"unknown name":          withParams(`{"name":"nope",` + good + `}`),
		"empty name":            withParams(`{"name":"",` + good + `}`),
		"arguments": withParams(`{"name":"echo","arguments":{"a":[1,{"b":null}], "c":"d"},` + good +
			`}`),
		"no arguments in it": withParams(`{"name":"echo","arguments": {},` + good + `}`),
		"arguments null":     withParams(`{"name":"echo","arguments":null,` + good + `}`),
		"arguments array":    withParams(`{"name":"echo","arguments":[],` + good + `}`),
		"arguments text":     withParams(`{"name":"echo","arguments":"x",` + good + `}`),
		"an argument twice":  withParams(`{"name":"echo","arguments":{"a":1,"a":2},` + good + `}`),
		"arguments too deep": withParams(`{"name":"echo","arguments":` + strings.Repeat(`{"a":`, 1000) + "1" +
			strings.Repeat("}", 1000) + `,` + good + `}`),
		"input responses":            withParams(`{"name":"echo","inputResponses":{},` + good + `}`),
		"request state":              withParams(`{"name":"echo","requestState":"x",` + good + `}`),
		"task":                       withParams(`{"name":"echo","task":{},` + good + `}`),
		"no _meta":                   withParams(`{"name":"echo"}`),
		"_meta null":                 withMeta("null"),
		"_meta array":                withMeta("[]"),
		"empty _meta":                withMeta("{}"),
		"_meta with more":            withMeta(metaOf(`{"traceparent":"00-1-2-01","x":{"y":[1]}}`)(version, good)),
		"_meta with an escape":       withMeta(metaOf(`{"\u0078":1}`)(version, good)),
		"progress token":             withMeta(metaOf(`{"progressToken":1}`)(version, good)),
		"progress token null":        withMeta(metaOf(`{"progressToken":null}`)(version, good)),
		"log level":                  withMeta(metaOf(`{"io.modelcontextprotocol/logLevel":"info"}`)(version, good)),
		"version with sessions":      withMeta(`{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}`),
		"version of the future":      withMeta(`{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}`),
		"version 2026-07-28":         withMeta(meta(withoutSessions)),
		"version that is no text":    withMeta(`{"io.modelcontextprotocol/protocolVersion":2026,"io.modelcontextprotocol/clientCapabilities":{}}`),
		"no capabilities":            withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`),
		"capabilities null":          withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}`),
		"capabilities that are none": withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":1}}`),
		"capabilities": withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
			`{"roots":{"listChanged":true},"elicitation":{},"x":1}}`),
		"no client info": withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`),
		"client info null": withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":null}`),
		"client info that is none": withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":{"name":1}}`),
	}
	return bodies
}

// metaOf returns what makes of an object a _meta of a protocol version: with what that version wants besides.
func metaOf(object string) func(version string, besides ...string) string {
	return func(version string, besides ...string) string {
		switch {
		case version < withoutSessions && len(besides) == 0:
			return "{}"
		case version < withoutSessions || len(besides) == 0:
			return object
		}
		return strings.TrimSuffix(object, "}") + "," + strings.TrimPrefix(besides[0], `"_meta":{`)
	}
}

// callHeaders are headers of a call, right and wrong.
func callHeaders() map[string][]string {
	return map[string][]string{
		"media type with a parameter":     {"Content-Type", "application/json; charset=utf-8"},
		"media type in capitals":          {"Content-Type", "Application/JSON"},
		"no media type":                   {"Content-Type", ""},
		"another media type":              {"Content-Type", "text/plain"},
		"malformed media type":            {"Content-Type", "application/json; ="},
		"accepts in the other order":      {"Accept", "text/event-stream,application/json"},
		"accepts more":                    {"Accept", "application/json, text/event-stream, text/html"},
		"accepts anything":                {"Accept", "*/*"},
		"accepts JSON only":               {"Accept", "application/json"},
		"accepts streams only":            {"Accept", "text/event-stream"},
		"accepts nothing":                 {"Accept", ""},
		"last event":                      {"Last-Event-Id", "1_0"},
		"language":                        {"Accept-Language", "ja-JP, en;q=0.5"},
		"no version":                      {"Mcp-Protocol-Version", ""},
		"older version":                   {"Mcp-Protocol-Version", "2025-06-18"},
		"version that never was":          {"Mcp-Protocol-Version", "2025-01-01"},
		"version of the future":           {"Mcp-Protocol-Version", "2030-01-01"},
		"no session":                      {"Mcp-Session-Id", ""},
		"session that never was":          {"Mcp-Session-Id", "nope"},
		"no method":                       {"Mcp-Method", ""},
		"another method":                  {"Mcp-Method", "tools/list"},
		"no name":                         {"Mcp-Name", ""},
		"another name":                    {"Mcp-Name", "nope"},
		"name in Base64":                  {"Mcp-Name", "=?base64?ZWNobw==?="},
		"name in malformed Base64":        {"Mcp-Name", "=?base64?*?="},
		"parameter that the tool lacks":   {"Mcp-Param-City", "Osaka"},
		"tool with a header":              {"Mcp-Param-City", "Kyoto"},
		"tool with a header that lacks":   nil,
		"tool with a header that differs": {"Mcp-Param-City", "Osaka"},
	}
}

// sendTwoWays runs a test with calls that the frontend answers itself and with calls that the SDK answers.
func sendTwoWays(t *testing.T, run func(t *testing.T, send func(*http.Request) *http.Request)) {
	t.Helper()
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		run(t, func(r *http.Request) *http.Request { return r })
	})
	t.Run("SDK", func(t *testing.T) {
		t.Parallel()
		run(t, aside)
	})
}

// TestCancelledCallIsAnswered: notifications/cancelled ends the call that it names and no other.
func TestCancelledCallIsAnswered(t *testing.T) {
	t.Parallel()
	sendTwoWays(t, func(t *testing.T, send func(*http.Request) *http.Request) {
		synctest.Test(t, func(t *testing.T) {
			calls, started, stopped := blocking()
			s := newServer(t, offer(t, nil, "x"), calls, nil)
			h := s.Handler()
			id, other := openSession(t, h), openSession(t, h)
			answer := make(chan *httptest.ResponseRecorder)
			go func() {
				answer <- do(h, send(post(withSessions,
					strings.Replace(message(withSessions, 1, "tools/call", `{"name":"x"}`), `"id":1`, `"id":"a"`, 1),
					"Mcp-Session-Id", id)))
			}()
			<-started
			cancel := func(session, request string) {
				body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + request + `}}`
				if w := do(h, post(withSessions, body, "Mcp-Session-Id", session)); w.Code != http.StatusAccepted {
					t.Errorf("cancel: %d %s", w.Code, w.Body)
				}
				synctest.Wait()
			}
			cancel(id, `1`)
			cancel(id, `{}`)
			cancel(other, `"a"`)
			select {
			case <-stopped:
				t.Error("another cancellation stopped the call")
			default:
			}
			cancel(id, `"a"`)
			<-stopped
			if answer := answerOf(t, <-answer); answer.ID != "a" || answer.Error == nil ||
				answer.Error.Message != "the request was canceled" {
				t.Errorf("answer %+v", answer)
			}
		})
	})
}

// TestIDInFlightIsRefused: and may be used again as soon as it has been answered.
func TestIDInFlightIsRefused(t *testing.T) {
	t.Parallel()
	sendTwoWays(t, func(t *testing.T, send func(*http.Request) *http.Request) {
		started, proceed := make(chan struct{}, 1), make(chan struct{})
		calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
			started <- struct{}{}
			<-proceed
			return ok(text("done"))
		})
		s := newServer(t, offer(t, nil, "x"), calls, nil)
		h := s.Handler()
		id, other := openSession(t, h), openSession(t, h)
		call := func(session string) *httptest.ResponseRecorder {
			return do(h, send(post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`),
				"Mcp-Session-Id", session)))
		}
		first, elsewhere := make(chan int), make(chan int)
		go func() { first <- call(id).Code }()
		<-started
		w := call(id)
		if w.Code != http.StatusBadRequest || answerOf(t, w).Error.Message != "duplicate in-flight request ID 1" ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("the second: %d %v %s", w.Code, w.Header(), w.Body)
		}
		go func() { elsewhere <- call(other).Code }()
		<-started
		close(proceed)
		if code := <-first; code != http.StatusOK {
			t.Errorf("the first: %d", code)
		}
		if code := <-elsewhere; code != http.StatusOK {
			t.Errorf("in another session: %d", code)
		}
		if w := call(id); w.Code != http.StatusOK {
			t.Errorf("again: %d %s", w.Code, w.Body)
		}
	})
}

// TestIDInFlightIsRefusedOtherWay: a call that the frontend answers itself and one that the SDK answers do not share an
// ID, so that a cancellation cancels one of them.
func TestIDInFlightIsRefusedOtherWay(t *testing.T) {
	t.Parallel()
	direct := func(r *http.Request) *http.Request { return r }
	for name, send := range map[string][2]func(*http.Request) *http.Request{
		"direct after SDK": {aside, direct}, "SDK after direct": {direct, aside},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, proceed := make(chan struct{}, 1), make(chan struct{})
			calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
				started <- struct{}{}
				<-proceed
				return ok(text("done"))
			})
			s := newServer(t, offer(t, nil, "x"), calls, nil)
			h := s.Handler()
			id := openSession(t, h)
			call := func(way int) *httptest.ResponseRecorder {
				return do(h, send[way](post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`),
					"Mcp-Session-Id", id)))
			}
			first := make(chan int)
			go func() { first <- call(0).Code }()
			<-started
			second := make(chan *httptest.ResponseRecorder, 1)
			go func() { second <- call(1) }()
			select {
			case w := <-second:
				if w.Code != http.StatusBadRequest ||
					answerOf(t, w).Error.Message != "duplicate in-flight request ID 1" {
					t.Errorf("the second: %d %s", w.Code, w.Body)
				}
			case <-started:
				t.Error("both calls run")
			}
			close(proceed)
			if code := <-first; code != http.StatusOK {
				t.Errorf("the first: %d", code)
			}
			if w := call(1); w.Code != http.StatusOK {
				t.Errorf("again: %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestCallsKeepSessions: a session is not idle while calls come or one is in flight.
func TestCallsKeepSessions(t *testing.T) {
	t.Parallel()
	sendTwoWays(t, func(t *testing.T, send func(*http.Request) *http.Request) {
		synctest.Test(t, func(t *testing.T) {
			calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
				if call.Request.Name == "slow" {
					time.Sleep(10 * time.Minute)
				}
				return ok(text("done"))
			})
			s := newServer(t, offer(t, nil, "quick", "slow"), calls,
				&Options{Limits: limits.Limits{SessionIdle: time.Minute}})
			h := s.Handler()
			id := openSession(t, h)
			call := func(name string, want int) {
				t.Helper()
				w := do(h, send(post(withSessions, message(withSessions, 1, "tools/call", `{"name":"`+name+`"}`),
					"Mcp-Session-Id", id)))
				if w.Code != want {
					t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, want)
				}
			}
			for range 5 {
				time.Sleep(50 * time.Second)
				call("quick", http.StatusOK)
			}
			call("slow", http.StatusOK)
			time.Sleep(59 * time.Second)
			call("quick", http.StatusOK)
			time.Sleep(61 * time.Second)
			call("quick", http.StatusNotFound)
			if n := s.sessions.count(); n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		})
	})
}

// TestEndedSessionsTakeNoCalls: only the owner ends one, and only the owner calls in one.
func TestEndedSessionsTakeNoCalls(t *testing.T) {
	t.Parallel()
	sendTwoWays(t, func(t *testing.T, send func(*http.Request) *http.Request) {
		aki, akiHash := bearer.New()
		bo, boHash := bearer.New()
		s := newServer(t, offer(t, serveEverything, "x"), nil,
			&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
				{Name: "a", Hash: akiHash, User: "aki"}, {Name: "b", Hash: boHash, User: "bo"},
			}})})
		h := s.Handler()
		id := openSession(t, h, "Authorization", "Bearer "+aki)
		call := func(token string) int {
			return do(h, send(post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`),
				"Authorization", "Bearer "+token, "Mcp-Session-Id", id))).Code
		}
		end := func(token string) int {
			r := post(withSessions, "", "Authorization", "Bearer "+token, "Mcp-Session-Id", id)
			r.Method = http.MethodDelete
			return do(h, r).Code
		}
		for _, step := range []struct {
			what      string
			got, want int
		}{
			{"a stranger's call", call(bo), http.StatusNotFound},
			{"a stranger's end", end(bo), http.StatusNotFound},
			{"sessions after that", s.sessions.count(), 1},
			{"the owner's call", call(aki), http.StatusOK},
			{"the owner's end", end(aki), http.StatusNoContent},
			{"a call after it", call(aki), http.StatusNotFound},
		} {
			if step.got != step.want {
				t.Errorf("%s: %d, want %d", step.what, step.got, step.want)
			}
		}
	})
}

// TestEndedSessionAnswers: a request in flight is answered after the end of its session.
func TestEndedSessionAnswers(t *testing.T) {
	t.Parallel()
	sendTwoWays(t, func(t *testing.T, send func(*http.Request) *http.Request) {
		synctest.Test(t, func(t *testing.T) {
			started, proceed := make(chan struct{}), make(chan struct{})
			calls := caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
				close(started)
				<-proceed
				return ok(text("still running: %t", ctx.Err() == nil))
			})
			s := newServer(t, offer(t, nil, "x"), calls, nil)
			h := s.Handler()
			id := openSession(t, h)
			answer := make(chan *httptest.ResponseRecorder)
			go func() {
				answer <- do(h, send(post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`),
					"Mcp-Session-Id", id)))
			}()
			<-started
			end := post(withSessions, "", "Mcp-Session-Id", id)
			end.Method = http.MethodDelete
			if w := do(h, end); w.Code != http.StatusNoContent {
				t.Errorf("DELETE: %d %s", w.Code, w.Body)
			}
			synctest.Wait()
			close(proceed)
			if w := <-answer; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "still running: true") {
				t.Errorf("the call: %d %s", w.Code, w.Body)
			}
			synctest.Wait()
			if n := len(slices.Collect(s.sdk.Sessions())); n != 0 {
				t.Errorf("%d connections of the SDK are left", n)
			}
			s.Close()
		})
	})
}

// TestBrokenResultIsAnswered: structured content is valid JSON by contract. The SDK does not answer at all when it is
// not.
func TestBrokenResultIsAnswered(t *testing.T) {
	t.Parallel()
	calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
		return ok(&abi.Response{StructuredContent: json.RawMessage("{\n")})
	})
	h := newServer(t, offer(t, nil, "x"), calls, nil).Handler()
	w := do(h, post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`), "Mcp-Session-Id",
		openSession(t, h)))
	if answer := answerOf(t, w); answer.Error == nil || answer.Error.Message != internalText {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRemovedToolIsUnknown: also to calls that the frontend answers itself.
func TestRemovedToolIsUnknown(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	put(t, c, serveEverything, &manifest.Manifest{Name: "test", Tools: []manifest.Tool{tool("x")}})
	h := newServer(t, c, nil, nil).Handler()
	call := func() *httptest.ResponseRecorder {
		return do(h, post(withoutSessions, message(withoutSessions, 1, "tools/call", `{"name":"x"}`)))
	}
	if w := call(); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	c.Remove("test")
	if w := call(); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `unknown tool \"x\"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

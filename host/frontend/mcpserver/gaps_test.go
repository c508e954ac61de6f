package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// What the SDK leaves to a host, each with a test: the panics, the headers, the cancellation and so on here; malformed
// lines in stdio_test.go, authentication in auth_test.go, limits in limiter_test.go, event streams in stream_test.go.

func TestPanicCostsOneCall(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			if call.Request.Name == "calm" {
				return ok(text("fine"))
			}
			panic("password is hunter2")
		})
		s := newServer(t, offerAll(t, nil, &manifest.Manifest{
			Name: "test", Tools: []manifest.Tool{tool("calm"), tool("panics")},
			Prompts: []manifest.Prompt{{Name: "panics", Description: manifest.Text{"en": "Panics."}}},
		}), calls, nil)
		client := frontend.connect(t, s, version, nil)
		if result := call(t, client, "panics"); !result.IsError || textOf(t, result) != internalText {
			t.Errorf("tool: %+v, want a tool error", result)
		}
		_, err := client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "panics"})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || wire.Message != internalText {
			t.Errorf("prompt: %v, want -32603", err)
		}
		if result := call(t, client, "calm"); textOf(t, result) != "fine" {
			t.Errorf("afterwards: %+v", result)
		}
	})
}

func TestPanicInTheHandlerIsAnswered(t *testing.T) {
	t.Parallel()
	token, hash := bearer.New()
	s := newServer(t, offer(t, nil, "x"), nil, &Options{
		Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "a", Hash: hash,
			Expires: time.Now().Add(time.Hour)}}, Now: func() time.Time { panic("password is hunter2") }}),
	})
	w := do(s.Handler(), post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`),
		"Authorization", "Bearer "+token))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, nil, "x"), nil, &Options{Origins: []string{"https://app.example.com"},
		Hosts: []string{"hako.example.com"}})
	h := s.Handler()
	tests := map[string]struct {
		host    string
		origins []string
		allowed bool
	}{
		"no origin":                {"localhost:8420", nil, true},
		"127.0.0.1":                {"127.0.0.1:8420", nil, true},
		"IPv6":                     {"[::1]:8420", nil, true},
		"IPv6 without port":        {"[::1]", nil, true},
		"upper case, final dot":    {"LOCALHOST.:80", nil, true},
		"configured host":          {"hako.example.com", nil, true},
		"other host":               {"evil.example", nil, false},
		"loopback as a subdomain":  {"127.0.0.1.evil.example", nil, false},
		"localhost in a subdomain": {"localhost.evil.example", nil, false},
		"unspecified address":      {"0.0.0.0:8420", nil, false},
		"no host":                  {"", nil, false},
		"loopback origin":          {"localhost", []string{"http://localhost:6274"}, true},
		"IPv6 origin":              {"localhost", []string{"http://[::1]:6274"}, true},
		"configured origin":        {"localhost", []string{"https://app.example.com"}, true},
		"configured, other port":   {"localhost", []string{"https://app.example.com:444"}, false},
		"configured, other scheme": {"localhost", []string{"http://app.example.com"}, false},
		"other origin":             {"localhost", []string{"https://evil.example"}, false},
		"origin equal to host":     {"evil.example", []string{"http://evil.example"}, false},
		"opaque origin":            {"localhost", []string{"null"}, false},
		"two origins": {"localhost", []string{"https://app.example.com", "https://app.example.com"},
			false},
		"file origin": {"localhost", []string{"file://localhost"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, http.MethodPut} {
				r := post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`))
				r.Method, r.Host = method, test.host
				r.Header["Origin"] = test.origins
				if w := do(h, r); (w.Code != http.StatusForbidden) != test.allowed {
					t.Errorf("%s: %d %s", method, w.Code, w.Body)
				} else if !test.allowed && !strings.Contains(w.Body.String(), "allowed") {
					t.Errorf("%s: the refusal does not say what to do: %s", method, w.Body)
				}
			}
		})
	}
}

func TestCrossOriginHeaders(t *testing.T) {
	t.Parallel()
	h := newServer(t, offer(t, nil, "x"), nil, &Options{Origins: []string{"https://app.example.com"}}).Handler()
	preflight := func(origin string) *httptest.ResponseRecorder {
		r := post(withoutSessions, "", "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,mcp-method")
		r.Method = http.MethodOptions
		return do(h, r)
	}
	w := preflight("https://app.example.com")
	if got := w.Header(); w.Code != http.StatusNoContent ||
		got.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		got.Get("Access-Control-Allow-Headers") != "authorization,mcp-method" || got.Get("Vary") != "Origin" {
		t.Errorf("preflight: %d %v", w.Code, got)
	}
	if w := preflight("http://localhost:3000"); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("a local page that nobody has allowed may read answers")
	}
	w = do(h, post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Origin",
		"https://app.example.com"))
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("request: %d %v", w.Code, w.Header())
	}
}

func TestNameHeaderIsDecoded(t *testing.T) {
	t.Parallel()
	const known, unknown = "test://fixed", "test://天気/東京"
	s := newServer(t, offerAll(t, serveEverything, everything()), nil, nil)
	encoded := func(s string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=" }
	tests := map[string]struct {
		uri, header string
		status      int
		code        int
	}{
		"plain":                 {known, known, http.StatusOK, 0},
		"encoded":               {known, encoded(known), http.StatusOK, 0},
		"encoded, beyond ASCII": {unknown, encoded(unknown), http.StatusBadRequest, jsonrpc.CodeInvalidParams},
		"encoded, another":      {known, encoded(unknown), http.StatusBadRequest, mcp.CodeHeaderMismatch},
		"invalid Base64":        {known, "=?base64?!?=", http.StatusBadRequest, mcp.CodeHeaderMismatch},
		"half a marker":         {known, "=?base64?=", http.StatusBadRequest, mcp.CodeHeaderMismatch},
		"missing":               {known, "", http.StatusBadRequest, mcp.CodeHeaderMismatch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := message(withoutSessions, 1, "resources/read", `{"uri":"`+test.uri+`"}`)
			w := do(s.Handler(), post(withoutSessions, body, "Mcp-Name", test.header))
			answer := answerOf(t, w)
			if w.Code != test.status || (answer.Error == nil) != (test.code == 0) || answer.Error != nil &&
				answer.Error.Code != test.code {
				t.Errorf("%d %s, want %d with code %d", w.Code, w.Body, test.status, test.code)
			}
			if answer.ID != 1.0 {
				t.Errorf("the answer has the ID %v, want 1", answer.ID)
			}
		})
	}
}

// blocking is a Pipeline whose calls end with their contexts.
func blocking() (calls Pipeline, started, stopped chan struct{}) {
	started, stopped = make(chan struct{}, 1), make(chan struct{}, 1)
	return caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, ctx.Err()
	}), started, stopped
}

// TestCancellationStopsTheCall: by the client's own word; over HTTP the SDK's client says it in the way of its version.
func TestCancellationStopsTheCall(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		calls, started, stopped := blocking()
		client := frontend.connect(t, newServer(t, offer(t, nil, "x"), calls, nil), version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		if _, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("the call: %v", err)
		}
		<-stopped
	})
}

// TestDisconnectStopsTheCall: over HTTP by closing the connection, in both versions.
func TestDisconnectStopsTheCall(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for _, token := range []string{"", `,"_meta":{"progressToken":1}`} { // JSON and event stream
			t.Run(version+token, func(t *testing.T) {
				t.Parallel()
				calls, started, stopped := blocking()
				s := newServer(t, offer(t, nil, "x"), calls, nil)
				url := listen(t, s)
				headers := []string{"Authorization", ""}
				if version < withoutSessions {
					headers = append(headers, "Mcp-Session-Id", openSession(t, s.Handler()))
				}
				ctx, leave := context.WithCancel(t.Context())
				body := message(version, 1, "tools/call", `{"name":"x"}`)
				if token != "" {
					body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
				}
				r := post(version, body, headers...).WithContext(ctx)
				r.URL.Scheme, r.URL.Host, r.RequestURI = "http", strings.TrimPrefix(url, "http://"), ""
				go web.Do(r)
				<-started
				leave()
				<-stopped
			})
		}
	}
}

// TestProgress: it arrives over each frontend in each protocol version when the client has asked for it.
func TestProgress(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		serve := func(_ context.Context, _ *abi.Request, progress func(abi.Progress)) (*abi.Response, error) {
			if progress == nil {
				return text("nobody listens"), nil
			}
			progress(abi.Progress{Progress: nan(), Message: "nonsense"})
			progress(abi.Progress{Progress: 1, Total: 2, Message: "half"})
			progress(abi.Progress{Progress: 0, Total: 2, Message: "backwards"})
			progress(abi.Progress{Progress: 2, Total: 2, Message: "all"})
			return text("done"), nil
		}
		reports := make(chan string, 4)
		client := frontend.connect(t, newServer(t, offer(t, serve, "x"), nil, nil), version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				reports <- fmt.Sprintf("%v: %v/%v %s", req.Params.ProgressToken, req.Params.Progress, req.Params.Total,
					req.Params.Message)
			},
		})
		params := &mcp.CallToolParams{Name: "x"}
		if result, err := client.CallTool(t.Context(), params); err != nil || textOf(t, result) != "nobody listens" {
			t.Errorf("without a token: %+v, %v", result, err)
		}
		params.SetProgressToken("tok")
		result, err := client.CallTool(t.Context(), params)
		if err != nil || textOf(t, result) != "done" {
			t.Errorf("with a token: %+v, %v", result, err)
		}
		for _, want := range []string{"tok: 1/2 half", "tok: 1.0000000000000002/2 backwards", "tok: 2/2 all"} {
			if got := <-reports; got != want {
				t.Errorf("progress %q, want %q", got, want)
			}
		}
	})
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

// TestFormOfTheAnswer: one JSON object where nothing can come before it, an event stream where progress may.
func TestFormOfTheAnswer(t *testing.T) {
	t.Parallel()
	h := newServer(t, offer(t, serveEverything, "x"), nil, nil).Handler()
	body := message(withoutSessions, 1, "tools/call", `{"name":"x"}`)
	if w := do(h, post(withoutSessions, body)); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("without a token: %s", w.Header().Get("Content-Type"))
	}
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
	if w := do(h, post(withoutSessions, body)); w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("with a token: %s", w.Header().Get("Content-Type"))
	}
}

// TestErrorsOfTheSDKHaveCodes: what the SDK refuses by itself with a bare error.
func TestErrorsOfTheSDKHaveCodes(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
	id := openSession(t, s.Handler())
	w := do(s.Handler(), post(withSessions, initialize(withSessions), "Mcp-Session-Id", id))
	if answer := answerOf(t, w); answer.Error == nil || answer.Error.Code != jsonrpc.CodeInvalidRequest {
		t.Errorf("second initialize: %s", w.Body)
	}
}

// TestMethodsAreChecked: a request with a method that does not fit is answered as JSON-RPC, over HTTP too, and the
// session goes on.
func TestMethodsAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
	id := openSession(t, s.Handler())
	for _, test := range []struct {
		body   string
		status int
		code   int64
		of     any
		text   string
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"tools/lst"}`, http.StatusOK, jsonrpc.CodeMethodNotFound, 7.0,
			`"tools/lst"`},
		{`{"jsonrpc":"2.0","id":"a","method":"tasks/list","params":{}}`, http.StatusOK, jsonrpc.CodeMethodNotFound, "a",
			`"tasks/list"`},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, http.StatusOK, jsonrpc.CodeInvalidParams, 7.0,
			"needs params"},
		{`{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}`, http.StatusOK, jsonrpc.CodeInvalidRequest,
			7.0, "without an id"},
		{`{"jsonrpc":"2.0","method":"tools/list"}`, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, nil,
			"with an id"},
	} {
		w := do(s.Handler(), post(withSessions, test.body, "Mcp-Session-Id", id))
		answer := answerOf(t, w)
		if w.Code != test.status || w.Header().Get("Content-Type") != "application/json" || answer.ID != test.of ||
			answer.Error == nil || int64(answer.Error.Code) != test.code ||
			!strings.Contains(answer.Error.Message, test.text) {
			t.Errorf("%s: %d %s", test.body, w.Code, w.Body)
		}
	}
	if w := do(s.Handler(), post(withSessions, `{"jsonrpc":"2.0","method":"notifications/of/others"}`, "Mcp-Session-Id",
		id)); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
		t.Errorf("an unknown notification: %d %s", w.Code, w.Body)
	}
	w := do(s.Handler(), post(withoutSessions, message(withoutSessions, 1, "tools/lst", `{}`)))
	if answer := answerOf(t, w); w.Code != http.StatusNotFound || answer.Error == nil ||
		answer.Error.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("without sessions: %d %s", w.Code, w.Body)
	}
	w = do(s.Handler(), post(withoutSessions, `{"jsonrpc":"2.0","id":3,"method":"tools/call"}`))
	if answer := answerOf(t, w); w.Code != http.StatusBadRequest || answer.Error == nil ||
		answer.Error.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("without params: %d %s", w.Code, w.Body)
	}
	if w := do(s.Handler(), post(withSessions, message(withSessions, 2, "tools/list", `{}`), "Mcp-Session-Id",
		id)); answerOf(t, w).Error != nil {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
	batched := initialize(withBatching)
	id = do(s.Handler(), post(withBatching, batched)).Header().Get("Mcp-Session-Id")
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"pong"}]`
	w = do(s.Handler(), post(withBatching, batch, "Mcp-Session-Id", id))
	if answer := answerOf(t, w); w.Code != http.StatusBadRequest || answer.Error == nil ||
		answer.Error.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("in a batch: %d %s", w.Code, w.Body)
	}
}

// TestMethodsAreTheSDKs: the transport knows the methods that the SDK serves.
func TestMethodsAreTheSDKs(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
	id := openSession(t, s.Handler())
	for _, method := range []string{"tools/call", "resources/read", "prompts/get", "completion/complete",
		"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"ping",
		"tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover",
		"notifications/cancelled", "notifications/initialized", "notifications/progress",
		"notifications/roots/list_changed"} {
		if !transport.Known(method) {
			t.Errorf("%s is not known", method)
		}
		body := message(withSessions, 1, method, `{}`)
		if strings.HasPrefix(method, "notifications/") {
			body = `{"jsonrpc":"2.0","method":"` + method + `","params":{}}`
		}
		if w := do(s.Handler(), post(withSessions, body, "Mcp-Session-Id", id)); w.Code >= 300 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

func TestCacheScope(t *testing.T) {
	t.Parallel()
	token, hash := bearer.New()
	opened, err := auth.New(auth.Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash}}})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options *Options
		method  string
		params  string
		want    string
	}{
		"list":                {nil, "tools/list", `{}`, `"ttlMs":10000,"cacheScope":"public"`},
		"discover":            {nil, "server/discover", `{}`, `"ttlMs":10000,"cacheScope":"public"`},
		"resource":            {nil, "resources/read", `{"uri":"test://fixed"}`, `"ttlMs":0,"cacheScope":"private"`},
		"list, authenticated": {&Options{Auth: opened}, "tools/list", `{}`, `"ttlMs":10000,"cacheScope":"private"`},
		"list, not kept":      {&Options{ListTTL: -1}, "tools/list", `{}`, `"ttlMs":0,"cacheScope":"public"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, offerAll(t, serveEverything, everything()), nil, test.options)
			w := do(s.Handler(), post(withoutSessions, message(withoutSessions, 1, test.method, test.params),
				"Authorization", "Bearer "+token))
			if !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%s, want %s in it", w.Body, test.want)
			}
		})
	}
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/host/mcpserver/limits"
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
// header. bySDK counts the calls that the SDK takes.
func serveAnswers(t testing.TB, options *Options) (s *Server, bySDK *atomic.Int64) {
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
	s = newServer(t, offerAll(t, nil, m), calls, options)
	return s, countBySDK(s)
}

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

// aside makes a request one for the SDK, without a difference that the SDK would see.
func aside(r *http.Request) *http.Request {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	r.Header.Set("Accept", strings.ReplaceAll(accept, ",", ";q=1,")+";q=1")
	return r
}

const (
	direct = true  // the frontend answers itself
	sdk    = false // the SDK does
)

// TestDirectCallsAreTheSDKs sends each request both ways: status, headers and content of the answers are the same.
func TestDirectCallsAreTheSDKs(t *testing.T) {
	t.Parallel()
	s, bySDK := serveAnswers(t, &Options{Limits: limits.Limits{Rate: 1 << 20}})
	h := s.Handler()
	session := openSession(t, h)
	compare := func(t *testing.T, request func() *http.Request, want bool) {
		t.Helper()
		before := bySDK.Load()
		got := do(h, request())
		if taken := bySDK.Load() != before; taken && want == direct {
			t.Error("the SDK took the call")
		}
		before = bySDK.Load()
		reference := do(h, aside(request()))
		if want == direct && bySDK.Load() == before {
			t.Fatal("the SDK did not take the call that is the reference")
		}
		if want == sdk && got.Header().Get("Content-Length") != "" {
			t.Error("the frontend answered itself")
		}
		sameAnswer(t, got, reference)
	}
	for _, version := range eras {
		session := session
		if version >= sessionless {
			session = ""
		}
		for name := range answers {
			t.Run(version+" "+name, func(t *testing.T) {
				compare(t, func() *http.Request {
					return post(version, message(version, 1, "tools/call", `{"name":"`+name+`"}`), "Mcp-Session-Id",
						session)
				}, direct)
			})
		}
		for name, test := range directBodies(version) {
			t.Run(version+" "+name, func(t *testing.T) {
				compare(t, func() *http.Request {
					return post(version, test.body, "Mcp-Session-Id", session, "Mcp-Method", methodOf(version),
						"Mcp-Name", nameOf(version, "echo"))
				}, test.way)
			})
		}
		for name, test := range directHeaders(version) {
			t.Run(version+" "+name, func(t *testing.T) {
				compare(t, func() *http.Request {
					tool := "echo"
					if strings.HasPrefix(name, "tool with a header") {
						tool = "header"
					}
					headers := append([]string{"Mcp-Session-Id", session}, test.headers...)
					return post(version, message(version, 1, "tools/call",
						`{"name":"`+tool+`","arguments":{"city":"Kyoto"}}`), headers...)
				}, test.way)
			})
		}
	}
}

func methodOf(version string) string { return nameOf(version, abi.CallTool) }

// nameOf is the value of a header that only 2026-07-28 has.
func nameOf(version, name string) string {
	if version >= sessionless {
		return name
	}
	return ""
}

func sameAnswer(t *testing.T, got, want *httptest.ResponseRecorder) {
	t.Helper()
	if got.Code != want.Code {
		t.Errorf("status %d %s, the SDK's is %d %s", got.Code, got.Body, want.Code, want.Body)
	}
	headers := func(w *httptest.ResponseRecorder) http.Header {
		h := w.Result().Header
		h.Del("Content-Length") // the SDK lets net/http find out, or sends chunks
		return h
	}
	if !maps.EqualFunc(headers(got), headers(want), func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
		t.Errorf("headers %v, the SDK's are %v", headers(got), headers(want))
	}
	if a, b := contentOf(t, got), contentOf(t, want); !sameJSON(t, a, b) {
		t.Errorf("answer %s, the SDK's is %s", a, b)
	}
}

// contentOf is the content of an answer as JSON, whatever its form.
func contentOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	body := w.Body.String()
	if event, ok := strings.CutPrefix(body, "event: message\ndata: "); ok {
		if event, ok = strings.CutSuffix(event, "\n\n"); !ok || strings.ContainsAny(event, "\r\n") {
			t.Errorf("event %q", body)
		}
		return event
	}
	if json.Valid([]byte(body)) {
		return body
	}
	quoted, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

type directBody struct {
	body string
	way  bool
}

// directBodies are messages of an era, and which way they go.
func directBodies(version string) map[string]directBody {
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
	bodies := map[string]directBody{
		"id 0":                     {withID("0"), direct},
		"id -7":                    {withID("-7"), direct},
		"id with 15 digits":        {withID("123456789012345"), direct},
		"id too large for a float": {withID("9007199254740993"), sdk},
		"id with a fraction":       {withID("1.5"), sdk},
		"id 1.0":                   {withID("1.0"), sdk},
		"id 1e3":                   {withID("1e3"), sdk},
		"id -0":                    {withID("-0"), sdk},
		"id null":                  {withID("null"), sdk},
		"id true":                  {withID("true"), sdk},
		"id object":                {withID("{}"), sdk},
		"text id":                  {withID(`"a"`), direct},
		"empty id":                 {withID(`""`), direct},
		"id with escapes":          {withID(`"\u0061\n\"箱"`), direct},
		"no id":                    {strings.Replace(plain, `"id":1,`, "", 1), sdk},
		"two ids":                  {strings.Replace(plain, `"id":1,`, `"id":1,"id":2,`, 1), sdk},
		"members in another order": {`{"params":{` + good +
			`,"name":"echo"},"method":"tools/call","id":1,"jsonrpc":"2.0"}`, direct},
		"white space":           {" \r\n\t" + strings.ReplaceAll(plain, `,"`, "\n,\t\"") + " \n", direct},
		"JSON-RPC 1.0":          {strings.Replace(plain, "2.0", "1.0", 1), sdk},
		"no JSON-RPC version":   {strings.Replace(plain, `"jsonrpc":"2.0",`, "", 1), sdk},
		"another method":        {strings.Replace(plain, "tools/call", "tools/Call", 1), sdk},
		"method with an escape": {strings.Replace(plain, "tools/call", `tools\/call`, 1), sdk},
		"member with an escape": {strings.Replace(plain, `"method"`, `"m\u0065thod"`, 1), sdk},
		"unknown member":        {strings.Replace(plain, `"id":1`, `"id":1,"x":1`, 1), sdk},
		"a result too":          {strings.Replace(plain, `"id":1`, `"id":1,"result":{}`, 1), sdk},
		"batch":                 {"[" + plain + "]", sdk},
		"two messages":          {plain + plain, sdk},
		"cut":                   {plain[:len(plain)-1], sdk},
		"byte order mark":       {"\ufeff" + plain, sdk},
		"not UTF-8":             {strings.Replace(plain, `"name"`, "\"x\":\"\xff\",\"name\"", 1), sdk},
		"nothing":               {"", sdk},
		"null":                  {"null", sdk},
		"no params":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, sdk},
		"params null":           {withParams("null"), sdk},
		"params array":          {withParams("[]"), sdk},
		"no name":               {withParams("{" + good + "}"), sdk},
		"name null":             {withParams(`{"name":null,` + good + `}`), sdk},
		"name number":           {withParams(`{"name":1,` + good + `}`), sdk},
		"name twice":            {withParams(`{"name":"echo","name":"echo",` + good + `}`), sdk},
		"name with an escape":   {withParams(`{"name":"\u0065cho",` + good + `}`), direct},
		"name in capitals":      {withParams(`{"Name":"echo",` + good + `}`), sdk},
		"unknown name":          {withParams(`{"name":"nope",` + good + `}`), sdk},
		"empty name":            {withParams(`{"name":"",` + good + `}`), sdk},
		"arguments": {withParams(`{"name":"echo","arguments":{"a":[1,{"b":null}], "c":"d"},` + good +
			`}`), direct},
		"no arguments in it": {withParams(`{"name":"echo","arguments": {},` + good + `}`), direct},
		"arguments null":     {withParams(`{"name":"echo","arguments":null,` + good + `}`), sdk},
		"arguments array":    {withParams(`{"name":"echo","arguments":[],` + good + `}`), sdk},
		"arguments text":     {withParams(`{"name":"echo","arguments":"x",` + good + `}`), sdk},
		"an argument twice":  {withParams(`{"name":"echo","arguments":{"a":1,"a":2},` + good + `}`), sdk},
		"arguments too deep": {withParams(`{"name":"echo","arguments":` + strings.Repeat(`{"a":`, 1000) + "1" +
			strings.Repeat("}", 1000) + `,` + good + `}`), sdk},
		"input responses": {withParams(`{"name":"echo","inputResponses":{},` + good + `}`), sdk},
		"request state":   {withParams(`{"name":"echo","requestState":"x",` + good + `}`), sdk},
		"task":            {withParams(`{"name":"echo","task":{},` + good + `}`), sdk},
		"no _meta":        {withParams(`{"name":"echo"}`), version < sessionless},
		"_meta null":      {withMeta("null"), sdk},
		"_meta array":     {withMeta("[]"), sdk},
		"empty _meta":     {withMeta("{}"), version < sessionless},
		"_meta with more": {withMeta(metaOf(`{"traceparent":"00-1-2-01","x":{"y":[1]}}`)(version, good)),
			direct},
		"_meta with an escape": {withMeta(metaOf(`{"\u0078":1}`)(version, good)), sdk},
		"progress token":       {withMeta(metaOf(`{"progressToken":1}`)(version, good)), sdk},
		"progress token null":  {withMeta(metaOf(`{"progressToken":null}`)(version, good)), sdk},
		"log level": {withMeta(metaOf(`{"io.modelcontextprotocol/logLevel":"info"}`)(version, good)),
			sdk},
		"version of the other era":   {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}`), sdk},
		"version of the future":      {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}`), sdk},
		"version 2026-07-28":         {withMeta(meta(withoutSessions)), version >= sessionless},
		"version that is no text":    {withMeta(`{"io.modelcontextprotocol/protocolVersion":2026,"io.modelcontextprotocol/clientCapabilities":{}}`), sdk},
		"no capabilities":            {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), sdk},
		"capabilities null":          {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}`), sdk},
		"capabilities that are none": {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":1}}`), sdk},
		"capabilities": {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
			`{"roots":{"listChanged":true},"elicitation":{},"x":1}}`), version >= sessionless},
		"no client info": {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`), version >= sessionless},
		"client info null": {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":null}`), sdk},
		"client info that is none": {withMeta(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":{"name":1}}`), sdk},
	}
	return bodies
}

// metaOf returns what makes of an object a _meta of an era: with what that era wants besides.
func metaOf(object string) func(version string, besides ...string) string {
	return func(version string, besides ...string) string {
		switch {
		case version < sessionless && len(besides) == 0:
			return "{}"
		case version < sessionless || len(besides) == 0:
			return object
		}
		return strings.TrimSuffix(object, "}") + "," + strings.TrimPrefix(besides[0], `"_meta":{`)
	}
}

type directHeader struct {
	headers []string
	way     bool
}

// directHeaders are headers of an era, and which way a call with them goes.
func directHeaders(version string) map[string]directHeader {
	sessions := version < sessionless
	return map[string]directHeader{
		"media type with a parameter": {[]string{"Content-Type", "application/json; charset=utf-8"}, direct},
		"media type in capitals":      {[]string{"Content-Type", "Application/JSON"}, direct},
		"no media type":               {[]string{"Content-Type", ""}, sdk},
		"another media type":          {[]string{"Content-Type", "text/plain"}, sdk},
		"malformed media type":        {[]string{"Content-Type", "application/json; ="}, sdk},
		"accepts in the other order":  {[]string{"Accept", "text/event-stream,application/json"}, direct},
		"accepts more": {[]string{"Accept", "application/json, text/event-stream, text/html"},
			direct},
		"accepts anything":                {[]string{"Accept", "*/*"}, sdk},
		"accepts JSON only":               {[]string{"Accept", "application/json"}, sdk},
		"accepts streams only":            {[]string{"Accept", "text/event-stream"}, sdk},
		"accepts nothing":                 {[]string{"Accept", ""}, sdk},
		"last event":                      {[]string{"Last-Event-Id", "1_0"}, sdk},
		"language":                        {[]string{"Accept-Language", "ja-JP, en;q=0.5"}, direct},
		"no version":                      {[]string{"Mcp-Protocol-Version", ""}, sessions},
		"older version":                   {[]string{"Mcp-Protocol-Version", "2025-06-18"}, sessions},
		"version that never was":          {[]string{"Mcp-Protocol-Version", "2025-01-01"}, sdk},
		"version of the future":           {[]string{"Mcp-Protocol-Version", "2030-01-01"}, sdk},
		"no session":                      {[]string{"Mcp-Session-Id", ""}, !sessions},
		"session that never was":          {[]string{"Mcp-Session-Id", "nope"}, !sessions},
		"no method":                       {[]string{"Mcp-Method", ""}, sessions},
		"another method":                  {[]string{"Mcp-Method", "tools/list"}, sessions},
		"no name":                         {[]string{"Mcp-Name", ""}, sessions},
		"another name":                    {[]string{"Mcp-Name", "nope"}, sessions},
		"name in Base64":                  {[]string{"Mcp-Name", "=?base64?ZWNobw==?="}, direct},
		"name in malformed Base64":        {[]string{"Mcp-Name", "=?base64?*?="}, sessions},
		"parameter that the tool lacks":   {[]string{"Mcp-Param-City", "Osaka"}, direct},
		"tool with a header":              {[]string{"Mcp-Param-City", "Kyoto"}, sdk},
		"tool with a header that lacks":   {nil, sdk},
		"tool with a header that differs": {[]string{"Mcp-Param-City", "Osaka"}, sdk},
	}
}

// TestDirectSessionsOfOtherVersions: a session whose client asked for a version that has no sessions is the SDK's
// alone.
func TestDirectSessionsOfOtherVersions(t *testing.T) {
	t.Parallel()
	for version, way := range map[string]bool{"2024-11-05": direct, "2025-03-26": direct, "2026-07-28": sdk, "9999-01-01": sdk, "": sdk} {
		s, bySDK := serveAnswers(t, nil)
		w := do(s.Handler(), post(withSessions, initialize(version), "Mcp-Protocol-Version", ""))
		id := w.Header().Get("Mcp-Session-Id")
		request := func() *http.Request {
			return post(withSessions, message(withSessions, 1, "tools/call", `{"name":"array"}`), "Mcp-Session-Id", id,
				"Mcp-Protocol-Version", "")
		}
		got := do(s.Handler(), request())
		if taken := bySDK.Load() == 1; taken == way {
			t.Errorf("version %q: taken by the SDK: %t", version, taken)
		}
		sameAnswer(t, got, do(s.Handler(), aside(request())))
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
			s := newServer(t, offer(t, nil, "quick", "slow"), calls, &Options{Limits: limits.Limits{SessionIdle: time.Minute}})
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
		aki, akiHash := auth.NewToken()
		bo, boHash := auth.NewToken()
		s := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: newAuth(t, auth.Options{Tokens: []auth.Token{
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

// FuzzPlainCall: what is taken for a plain call is answered as the SDK would answer it.
func FuzzPlainCall(f *testing.F) {
	for _, version := range eras {
		for _, test := range directBodies(version) {
			f.Add([]byte(test.body))
		}
	}
	s, _ := serveAnswers(f, &Options{Limits: limits.Limits{Rate: 1 << 30}})
	h := s.Handler()
	session := openSession(f, h)
	f.Fuzz(func(t *testing.T, body []byte) {
		call, ok := parsePlainCall(body)
		if !ok {
			return
		}
		for _, version := range eras {
			request := func() *http.Request {
				return post(version, string(body), "Mcp-Name", call.name, "Mcp-Session-Id", session)
			}
			sameAnswer(t, do(h, request()), do(h, aside(request())))
		}
	})
}

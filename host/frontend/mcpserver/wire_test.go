package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
)

var updateWire = flag.Bool("update-wire", false, "write what the server answers to testdata/wire.json")

// wireAnswer is the client's view of a response.
type wireAnswer struct {
	Status int             `json:"status"`
	Header []string        `json:"header"`
	Body   json.RawMessage `json:"body"`
}

// TestWireFormat sends each request of a list and compares status, headers and body of the responses with those on
// record. They were recorded from the SDK's own HTTP handlers.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	const file = "testdata/wire.json"
	s := serveAnswers(t, &Options{Limits: limits.Limits{Rate: 1 << 20}})
	h := s.Handler()
	session := openSession(t, h)
	got, want := map[string]wireAnswer{}, map[string]wireAnswer{}
	record := func(name string, r *http.Request) {
		w := do(h, r)
		answer := wireAnswer{Status: w.Code}
		header := w.Result().Header
		for _, key := range slices.Sorted(maps.Keys(header)) {
			value := strings.Join(header[key], ", ")
			switch key {
			case "Content-Length":
				continue // net/http finds out
			case "Mcp-Session-Id":
				value = "ID"
			}
			answer.Header = append(answer.Header, key+": "+value)
		}
		answer.Body = bytes.ReplaceAll(wireBody(t, w), []byte(session[:8]), []byte("SESSION"))
		got[name] = answer
	}
	for name, request := range wireRequests(session) {
		record(name, request)
	}
	if *updateWire {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(got)) {
			line, err := json.Marshal(got[name])
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%q: %s", name, line))
		}
		data := "{\n" + strings.Join(lines, ",\n") + "\n}\n"
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		a, b := got[name], want[name]
		if a.Status != b.Status || !slices.Equal(a.Header, b.Header) || !sameJSON(t, string(a.Body), string(b.Body)) {
			t.Errorf("%s: got\n\t%d %q %s, want\n\t%d %q %s", name, a.Status, a.Header, a.Body, b.Status, b.Header,
				b.Body)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is not on record", name)
	}
}

// wireBody is a body as JSON with its members in order: the JSON that it is, the events of a stream, or a text.
func wireBody(t *testing.T, w *httptest.ResponseRecorder) json.RawMessage {
	t.Helper()
	var body any
	switch text := w.Body.String(); {
	case w.Header().Get("Content-Type") == "text/event-stream":
		events := []any{}
		for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			fields := map[string]any{}
			for line := range strings.SplitSeq(event, "\n") {
				name, value, _ := strings.Cut(line, ": ")
				fields[name] = value
				var decoded any
				if name == "data" && json.Unmarshal([]byte(value), &decoded) == nil {
					fields[name] = decoded
				}
			}
			events = append(events, fields)
		}
		body = events
	case json.Unmarshal([]byte(text), &body) != nil:
		body = text
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wireRequests are requests by name, some of them in a session.
func wireRequests(session string) map[string]*http.Request {
	requests := map[string]*http.Request{}
	for _, version := range versions {
		session := session
		if version >= withoutSessions {
			session = ""
		}
		for name := range answers {
			requests[version+" answer "+name] = post(version,
				message(version, 1, "tools/call", `{"name":"`+name+`"}`), "Mcp-Session-Id", session)
		}
		for name, body := range callBodies(version) {
			requests[version+" body "+name] = post(version, body, "Mcp-Session-Id", session,
				"Mcp-Method", methodOf(version), "Mcp-Name", nameOf(version, "echo"))
		}
		slash := post(version, message(version, 1, "tools/list", `{}`), "Mcp-Session-Id", session,
			"Mcp-Method", nameOf(version, "tools/list"))
		slash.URL.Path += "/"
		requests[version+" slash at the end"] = slash
		for name, headers := range callHeaders() {
			tool := "echo"
			if strings.HasPrefix(name, "tool with a header") {
				tool = "header"
			}
			requests[version+" header "+name] = post(version, message(version, 1, "tools/call",
				`{"name":"`+tool+`","arguments":{"city":"Kyoto"}}`), append([]string{"Mcp-Session-Id", session},
				headers...)...)
		}
		for name, body := range map[string]string{
			"tools":             message(version, 1, "tools/list", `{}`),
			"tools with a text": message(version, 1, "tools/list", `{"cursor":7}`),
			"bad cursor":        message(version, 1, "tools/list", `{"cursor":"x"}`),
			"prompts":           message(version, 1, "prompts/list", `{}`),
			"resources":         message(version, 1, "resources/list", `{}`),
			"templates":         message(version, 1, "resources/templates/list", `{}`),
			"discover":          message(version, 1, "server/discover", `{}`),
			"ping":              message(version, 1, "ping", `{}`),
			"initialize": message(version, 1, "initialize",
				`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`),
			"no resource": message(version, 1, "resources/read", `{"uri":"x://y"}`),
			"no prompt":   message(version, 1, "prompts/get", `{"name":"y"}`),
			"complete": message(version, 1, "completion/complete",
				`{"ref":{"type":"ref/prompt","name":"y"},"argument":{"name":"a","value":"b"}}`),
			"level":              message(version, 1, "logging/setLevel", `{"level":"info"}`),
			"subscribe":          message(version, 1, "resources/subscribe", `{"uri":"x://y"}`),
			"unsubscribe":        message(version, 1, "resources/unsubscribe", `{"uri":"x://y"}`),
			"listen to nothing":  message(version, 1, "subscriptions/listen", `{"notifications":{}}`),
			"listen without":     message(version, 1, "subscriptions/listen", `{}`),
			"unknown":            message(version, 1, "made/up", `{}`),
			"initialized":        `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			"cancelled":          `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
			"cancelled, bad":     `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			"progress":           `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			"roots":              `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
			"unknown news":       `{"jsonrpc":"2.0","method":"notifications/made_up"}`,
			"news with an id":    message(version, 1, "notifications/initialized", `{}`),
			"request without id": `{"jsonrpc":"2.0","method":"tools/list","params":{}}`,
			"a response":         `{"jsonrpc":"2.0","id":1,"result":{}}`,
			"an error response":  `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}`,
		} {
			requests[version+" method "+name] = post(version, body, "Mcp-Session-Id", session)
			requests[version+" no header "+name] = post(version, body, "Mcp-Session-Id", session,
				"Mcp-Protocol-Version", "")
			if version < withoutSessions {
				requests[version+" no session "+name] = post(version, body)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
			for name, headers := range map[string][]string{
				"nothing": {}, "unknown session": {"Mcp-Session-Id", "x"},
				"no accept": {"Accept", "text/html", "Mcp-Session-Id", session},
				"bad event": {"Last-Event-Id", "x", "Mcp-Session-Id", session},
				"an event":  {"Last-Event-Id", "x_1", "Mcp-Session-Id", session},
			} {
				if method == http.MethodDelete && session != "" && slices.Contains(headers, session) {
					continue // it would end the session of the other requests
				}
				r := post(version, "", headers...)
				r.Method = method
				requests[fmt.Sprint(version, " ", method, " ", name)] = r
			}
		}
	}
	for _, version := range []string{"2024-11-05", "2025-03-26", "2026-07-28", "9999-01-01", ""} {
		requests["opening with "+version] = post(withSessions, initialize(version), "Mcp-Protocol-Version", "")
	}
	requests["a batch"] = post("2025-03-26", "["+message(withSessions, 1, "ping", `{}`)+"]", "Mcp-Session-Id", session)
	return requests
}

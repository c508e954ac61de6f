package mcpserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestHostileSites: a web page of another site reaches the endpoint in no way that browsers have.
func TestHostileSites(t *testing.T) {
	t.Parallel()
	options := &Options{Origins: []string{"https://app.example.com"}, Hosts: []string{"hako.example.com"}}
	for name, test := range map[string]struct {
		method, host string
		headers      []string
		allowed      bool
	}{
		"cross-site": {"POST", "localhost", []string{"Sec-Fetch-Site", "cross-site"},
			false},
		"in capitals": {"POST", "localhost", []string{"Sec-Fetch-Site", "Cross-Site"},
			false},
		"with space": {"POST", "localhost", []string{"Sec-Fetch-Site", " cross-site "},
			false},
		"a link that is followed": {"GET", "localhost", []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate"}, false},
		"a form": {"POST", "localhost", []string{"Sec-Fetch-Site", "cross-site",
			"Content-Type", "text/plain"}, false},
		"the end of a session": {"DELETE", "localhost", []string{"Sec-Fetch-Site", "cross-site"},
			false},
		"a loopback origin of another site": {"POST", "localhost", []string{"Sec-Fetch-Site", "cross-site",
			"Origin", "http://127.0.0.1:3000"}, false},
		"a null origin": {"POST", "localhost", []string{"Origin", "null"}, false},
		"an origin that is not allowed": {"POST", "hako.example.com",
			[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, false},
		"the same site at a name that others share": {"POST", "hako.example.com",
			[]string{"Sec-Fetch-Site", "same-site"}, false},
		"a word that nobody knows": {"POST", "localhost", []string{"Sec-Fetch-Site", "somewhere"},
			false},
		"a list": {"POST", "localhost",
			[]string{"Sec-Fetch-Site", "same-origin, cross-site"}, false},
		"no browser":        {"POST", "localhost", nil, true},
		"typed by a person": {"POST", "localhost", []string{"Sec-Fetch-Site", "none"}, true},
		"the same origin": {"POST", "localhost", []string{"Sec-Fetch-Site", "same-origin"},
			true},
		"another port of this machine": {"POST", "localhost",
			[]string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"}, true},
		"an allowed origin": {"POST", "hako.example.com",
			[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := post(withSessions, initialize(withSessions), test.headers...)
			r.Method, r.Host = test.method, test.host
			w := do(newServer(t, offer(t, serveEverything, "x"), nil, options).Handler(), r)
			if allowed := w.Code != http.StatusForbidden; allowed != test.allowed {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("two fields", func(t *testing.T) {
		t.Parallel()
		r := post(withSessions, initialize(withSessions), "Sec-Fetch-Site", "same-origin")
		r.Header.Add("Sec-Fetch-Site", "cross-site")
		if w := do(newServer(t, offer(t, serveEverything, "x"), nil, options).Handler(), r); w.Code != http.StatusForbidden {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// TestHostileJSON: a message that two readers could take in two ways is refused, and so is one that is none, in words.
func TestHostileJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		code int
		want string
	}{
		"a method twice": {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`,
			jsonrpc.CodeParseError, `the value has the duplicate key "method"`},
		"params twice": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"},"params":{"name":"y"}}`,
			jsonrpc.CodeParseError, "duplicate key"},
		"a name twice": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","name":"y"}}`,
			jsonrpc.CodeParseError, `"/params" has the duplicate key "name"`},
		"an argument twice":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"to":1,"to":2}}}`, jsonrpc.CodeParseError, `"/params/arguments"`},
		"escaped":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"to":1,"t\u006f":2}}}`, jsonrpc.CodeParseError, `duplicate key "to"`},
		"deep in an argument": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[{"b":{"c":1,"c":2}}]}}}`, jsonrpc.CodeParseError, `"/params/arguments/a/0/b"`},
		"in metadata":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1,"a":2},"name":"x"}}`, jsonrpc.CodeParseError, "duplicate key"},
		"in another method": {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","uri":"b"}}`,
			jsonrpc.CodeParseError, "duplicate key"},
		"in an answer": {`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","action":"decline"}}`,
			jsonrpc.CodeParseError, "duplicate key"},
		"in a notification": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}`, jsonrpc.CodeParseError, "duplicate key"},
		"two messages": {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`,
			jsonrpc.CodeParseError, "unexpected data after the value"},
		"cut off": {`{"jsonrpc":"2.0","id":1,"method":"ping"`, jsonrpc.CodeParseError, "it ends early"},
		"no message": {`{"id":1,"method":"ping"}`, jsonrpc.CodeInvalidRequest,
			"is not a JSON-RPC 2.0 message"},
		"an ID that is none": {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, jsonrpc.CodeInvalidRequest,
			"is not a JSON-RPC 2.0 message"},
		"an ID that is a fraction": {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, jsonrpc.CodeInvalidRequest,
			"send it as text, in quotes"},
		"an ID that a float64 does not hold": {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
			jsonrpc.CodeInvalidRequest, "send it as text, in quotes"},
		"an answer whose ID is a fraction": {`{"jsonrpc":"2.0","id":1.5,"result":{}}`, jsonrpc.CodeInvalidRequest,
			"send it as text, in quotes"},
		"a method that is none": {`{"jsonrpc":"2.0","id":1,"method":7}`, jsonrpc.CodeInvalidRequest,
			"is not a JSON-RPC 2.0 message"},
		"a number": {`7`, jsonrpc.CodeInvalidRequest, "is not a JSON-RPC 2.0 message"},
		"null":     {`null`, jsonrpc.CodeInvalidRequest, "is not a JSON-RPC 2.0 message"},
		"too deep": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"x":`, 5000) +
			"1" + strings.Repeat("}", 5000) + "}", jsonrpc.CodeInvalidRequest, "1,000 deep"},
		"more than hako's depth": {strings.Repeat("[", 20_000), jsonrpc.CodeParseError, "not valid JSON"},
	} {
		for _, version := range versions {
			t.Run(name+" in "+version, func(t *testing.T) {
				t.Parallel()
				h := newServer(t, offer(t, serveEverything, "x"), nil, nil).Handler()
				var headers []string
				if version == withSessions {
					headers = []string{"Mcp-Session-Id", openSession(t, h)}
				}
				w := do(h, post(version, test.body, headers...))
				got := answerOf(t, w)
				if w.Code != http.StatusBadRequest || got.Error == nil || got.Error.Code != test.code ||
					!strings.Contains(got.Error.Message, test.want) ||
					strings.Contains(got.Error.Message, "unmarshal") {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
	}
}

// TestRepeatedHeaders: a header with two values could mean one request to hako and another one to a proxy before it.
func TestRepeatedHeaders(t *testing.T) {
	t.Parallel()
	h := newServer(t, offer(t, serveEverything, "x"), nil, nil).Handler()
	id := openSession(t, h)
	for version, names := range map[string][]string{
		withSessions:    {"Content-Type", "Last-Event-Id", "Mcp-Protocol-Version", "Mcp-Session-Id"},
		withoutSessions: {"Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version"},
	} {
		for _, name := range names {
			r := post(version, message(version, 1, "tools/call", `{"name":"x","arguments":{}}`))
			if version == withSessions {
				r.Header.Set("Mcp-Session-Id", id)
			}
			first := r.Header.Get(name)
			r.Header[name] = []string{first, first}
			w := do(h, r)
			if want := "The " + name + " header comes more than once"; w.Code != http.StatusBadRequest ||
				!strings.HasPrefix(w.Body.String(), want) {
				t.Errorf("%s, %s: %d %s", version, name, w.Code, w.Body)
			}
		}
	}
}

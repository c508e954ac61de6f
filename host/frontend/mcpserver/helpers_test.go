package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/mcpsuite"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	withSessions    = "2025-11-25"
	withoutSessions = transport.Sessionless
)

var versions = []string{withSessions, withoutSessions}

// backend serves what the test's plugin offers.
type backend func(ctx context.Context, request *abi.Request, progress func(abi.Progress)) (*abi.Response, error)

func (b backend) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	return b(ctx, invocation.Request, invocation.Progress)
}

// caller is a Pipeline that stands in for the whole pipeline.
type caller func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error)

func (c caller) Call(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
	return c(ctx, call)
}

func text(format string, args ...any) *abi.Response {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: fmt.Sprintf(format, args...)}}}
}

func ok(response *abi.Response) (*pipeline.Result, error) {
	return &pipeline.Result{Response: response, Outcome: pipeline.OK}, nil
}

func tool(name string) manifest.Tool {
	return manifest.Tool{Name: name, Description: manifest.Text{"en": "Does " + name + "."},
		InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// offer is a catalog with one plugin that has these tools.
func offer(t testing.TB, serve backend, tools ...string) *catalog.Catalog {
	t.Helper()
	m := &manifest.Manifest{Name: "test"}
	for _, name := range tools {
		m.Tools = append(m.Tools, tool(name))
	}
	return offerAll(t, serve, m)
}

func offerAll(t testing.TB, serve backend, m *manifest.Manifest) *catalog.Catalog {
	t.Helper()
	c := new(catalog.Catalog)
	put(t, c, serve, m)
	return c
}

// put makes m valid where only the test's interest is in it, and offers it.
func put(t testing.TB, c *catalog.Catalog, serve backend, m *manifest.Manifest) {
	t.Helper()
	m.Version, m.Description = "1.0.0", manifest.Text{"en": "A test."}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(catalog.Source{Name: m.Name, Backend: serve}, m); err != nil {
		t.Fatal(err)
	}
}

// newServer returns a server; calls may be nil for the real pipeline.
func newServer(t testing.TB, c *catalog.Catalog, calls Pipeline, options *Options) *Server {
	t.Helper()
	if calls == nil {
		calls = pipeline.New(c, nil)
	}
	s, err := New(c, calls, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// frontend is a way to reach a server with the SDK's client.
type frontend struct {
	name    string
	connect func(t *testing.T, s *Server, version string, options *mcp.ClientOptions) *mcp.ClientSession
}

var frontends = []frontend{{"stdio", connectStdio}, {"HTTP", connectHTTP}}

// everyFrontend runs a test over each transport in each protocol version.
func everyFrontend(t *testing.T, run func(t *testing.T, frontend frontend, version string)) {
	t.Helper()
	for _, frontend := range frontends {
		for _, version := range versions {
			t.Run(frontend.name+" "+version, func(t *testing.T) {
				t.Parallel()
				run(t, frontend, version)
			})
		}
	}
}

func connectStdio(t *testing.T, s *Server, version string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(t.Context(), fromClient, toClient) }()
	session := connect(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, version, options)
	t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return session
}

func connectHTTP(t *testing.T, s *Server, version string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session := connect(t, overHTTP(listen(t, s)+Path), version, options)
	t.Cleanup(func() { session.Close() })
	return session
}

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: ownConnections()}

// ownConnections are nobody else's: an idle one of another test may be to a port that has a new server by now.
func ownConnections() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// overHTTP reaches the endpoint at a URL.
func overHTTP(url string) *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: ownConnections()}}
}

// listen serves s over TCP and returns the base URL.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Close() // streams would keep the test server from closing
		server.Close()
	})
	return server.URL
}

func connect(t *testing.T, transport mcp.Transport, version string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(context.WithoutCancel(t.Context()), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func call(t *testing.T, session *mcp.ClientSession, name string) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return result
}

func textOf(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("%d content blocks, want 1", len(result.Content))
	}
	block, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is a %T, want text", result.Content[0])
	}
	return block.Text
}

// message is a JSON-RPC request with the _meta that its protocol version wants.
func message(version string, id int, method, params string) string {
	if version >= withoutSessions {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version +
			`","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		params = strings.Replace(params, "{", "{"+meta+",", 1)
		params = strings.Replace(params, ",}", "}", 1)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// post makes an HTTP request as an MCP client would. Headers are pairs; a value of "" takes a header away.
func post(version, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	var e struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal([]byte(body), &e) // some bodies are malformed on purpose
	if version >= withoutSessions {
		r.Header.Set("Mcp-Method", e.Method)
		if name := e.Params.Name + e.Params.URI; name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// openSession initializes a session over HTTP and returns its ID.
func openSession(t testing.TB, h http.Handler, headers ...string) string {
	t.Helper()
	w := do(h, post(withSessions, initialize(withSessions), headers...))
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	initialized := post(withSessions, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		append(headers, "Mcp-Session-Id", id)...)
	if w := do(h, initialized); w.Code != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", w.Code, w.Body)
	}
	return id
}

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
}

// answerOf is the JSON-RPC response in an HTTP response, from JSON or the last event.
func answerOf(t testing.TB, w *httptest.ResponseRecorder) (answer struct {
	ID     any             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}) {
	t.Helper()
	data := w.Body.String()
	if strings.HasPrefix(w.Result().Header.Get("Content-Type"), "text/event-stream") { // as it was sent
		for scanner := bufio.NewScanner(strings.NewReader(data)); scanner.Scan(); {
			if event, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
				data = event
			}
		}
	}
	if err := json.Unmarshal([]byte(data), &answer); err != nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	return answer
}

// extension adds the fixtures of the conformance suite.
func extension() *Extension { return &Extension{mcpsuite.Configure, mcpsuite.Register} }

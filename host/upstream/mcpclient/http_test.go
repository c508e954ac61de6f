package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// web is a server over HTTP that can be made to fail.
type web struct {
	*httptest.Server
	mu sync.Mutex
	// fail answers tools/call in the place of the server, if it is not nil.
	fail http.HandlerFunc
	// seen are the headers of all requests.
	seen []http.Header
	// handler is the real one; replacing it forgets all sessions.
	handler http.Handler
	// stateless reports whether it speaks the newest version.
	stateless bool
}

func newWeb(t *testing.T) *web { return newWebOf(t, false) }

func newWebOf(t *testing.T, stateless bool) *web {
	t.Helper()
	w := &web{stateless: stateless}
	w.restart()
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	return w
}

func (w *web) restart() { w.serve(plainServer()) }

func (w *web) serve(server *mcp.Server) {
	w.set(func() {
		w.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: w.stateless})
	})
}

func (w *web) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *web) failWith(h http.HandlerFunc) { w.set(func() { w.fail = h }) }

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	w.seen = append(w.seen, r.Header.Clone())
	handler := w.handler
	if w.fail != nil && bytes.Contains(body, []byte(`"tools/call"`)) {
		handler = w.fail
	}
	w.mu.Unlock()
	handler.ServeHTTP(out, r)
}

func (w *web) spec(name string) mcpclient.Spec { return mcpclient.Spec{Name: name, URL: w.URL} }

// TestHTTPInBothEras: the newest version, and the one with sessions, over streamable HTTP.
func TestHTTPInBothEras(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "2025-11-25"} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			w := newWebOf(t, version == "")
			spec := w.spec("web")
			spec.ProtocolVersion = version
			spec.Headers = map[string]mcpclient.Value{"X-Api-Key": {Text: "key ${SUFFIX}"}}
			r := newRigWith(t, func(o *mcpclient.Options) { o.Environ = []string{"SUFFIX=7"} }, spec)
			if got := text(r.call("web_echo", `{"text":"hello"}`)); got != "hello" {
				t.Errorf("got %q", got)
			}
			if got := string(r.call("web_everything", "{}").Response.StructuredContent); got != `{"sum":9007199254740993}` {
				t.Errorf("structured content is %s", got)
			}
			want := version
			if want == "" {
				want = "2026-07-28"
			}
			if got := r.status("web"); got.Protocol != want || got.Transport != "http" {
				t.Errorf("status is %+v", got)
			}
			r.call("web_rename", "{}")
			r.eventually("the renamed tool", func() bool {
				return slices.Contains(r.tools(), "web_echo2") &&
					!slices.Contains(r.tools(), "web_echo")
			})
			w.set(func() {
				for _, header := range w.seen {
					if header.Get("X-Api-Key") != "key 7" {
						t.Errorf("a request without the header: %v", header)
					}
				}
			})
		})
	}
}

// TestHTTPFailures: what a server does to a call is a tool error with words that help, and the next call works.
func TestHTTPFailures(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret detail", code) }
	}
	for name, test := range map[string]struct {
		fail    http.HandlerFunc
		want    string
		outcome pipeline.Outcome
	}{
		"401": {status(401), "failed: status 401 Unauthorized", pipeline.ToolError},
		"403": {status(403), "status 403 Forbidden", pipeline.ToolError},
		"429": {status(429), "status 429 Too Many Requests", pipeline.ToolError},
		"500": {status(500), "status 500 Internal Server Error", pipeline.ToolError},
		"503": {status(503), "status 503 Service Unavailable", pipeline.ToolError},
		"hang": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, "did not respond within 300ms", pipeline.Timeout},
		"slow drip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, ":")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, "did not respond within 300ms", pipeline.Timeout},
		"truncated events": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":")
		}, `the stream ended with this instead: {"jsonrpc":"2.0","id":`, pipeline.ToolError},
		"truncated JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":`)
		}, `it is not a response to the request: {"jsonrpc":"2.0","id":`, pipeline.ToolError},
		"no MCP": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>secret detail")
		}, "it has the content type text/html, not JSON or an event stream", pipeline.ToolError},
		"endless JSON": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<16)); err != nil {
					return
				}
			}
		}, "larger than 1 MiB", pipeline.Size},
		"a large event": {func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var message struct{ ID json.RawMessage }
			_ = json.Unmarshal(body, &message)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", message.ID)
			for range 64 {
				fmt.Fprint(w, strings.Repeat("x", 1<<16))
			}
			fmt.Fprint(w, "\"}]}}\n\n")
		}, "larger than 1 MiB", pipeline.Size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t)
			spec := w.spec("web")
			spec.Limits = manifest.Limits{Output: 1 << 20}
			if test.outcome == pipeline.Timeout {
				spec.Limits.Time = 300 * time.Millisecond
			}
			r := newRig(t, spec)
			w.failWith(test.fail)
			got := r.call("web_echo", `{"text":"x"}`)
			if !got.Response.IsError || !strings.Contains(text(got), test.want) || got.Outcome != test.outcome {
				t.Errorf("got %s: %q, want %s: %q", got.Outcome, text(got), test.outcome, test.want)
			}
			if strings.Contains(text(got), "secret") || strings.Contains(text(got), w.URL) {
				t.Errorf("%q shows too much", text(got))
			}
			w.failWith(nil)
			r.eventually("a call that works",
				func() bool { return text(r.call("web_echo", `{"text":"again"}`)) == "again" })
		})
	}
}

// TestRedirectElsewhere: neither a call nor the operator's headers go where a server sends them.
func TestRedirectElsewhere(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(elsewhere.Close)
	w := newWeb(t)
	spec := w.spec("web")
	spec.Headers = map[string]mcpclient.Value{"X-Api-Key": {Text: "secret"}}
	r := newRig(t, spec)
	w.failWith(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if got := r.call("web_echo", "{}"); !got.Response.IsError || reached.Load() {
		t.Errorf("got %q, reached: %v", text(got), reached.Load())
	}
}

// TestHTTPBadResponses: a response that cannot be read, and a status, are the error of their call, at once and by name.
// The call in flight beside it goes on in the same session. Forms that can be read are.
func TestHTTPBadResponses(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	spec := w.spec("web")
	spec.ProtocolVersion = "2025-11-25"
	r := newRig(t, spec)
	started, finish := make(chan bool, 1), make(chan bool)
	var answer atomic.Pointer[http.HandlerFunc]
	w.failWith(func(out http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if bytes.Contains(body, []byte("slow")) {
			started <- true
			<-finish
		} else if f := *answer.Load(); f != nil {
			req.Body = io.NopCloser(bytes.NewReader(body))
			f(out, req)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(replyTo(body, `"result":{"content":[{"type":"text","text":"slow done"}]}`))
	})
	slow := make(chan string)
	go func() { slow <- text(r.call("web_echo", `{"text":"slow"}`)) }()
	<-started
	for name, test := range map[string]struct {
		status            int
		media, body, want string
	}{
		"content type":   {200, "application/json", `"result":{"content":[{"type":"video"}]}`, `content[0] has the type "video"`},
		"no number":      {200, "application/json", `"result":{"content":[],"structuredContent":NaN}`, "not valid JSON"},
		"in an event":    {200, "text/event-stream", `"result":{"content":[],"structuredContent":NaN}`, "not valid JSON"},
		"error as text":  {200, "application/json", `"error":"broken"`, `"broken"`},
		"as text":        {200, "text/plain", `"result":{"content":[{"type":"text","text":"fine"}]}`, "fine"},
		"no type":        {200, "", `"result":{"content":[{"type":"text","text":"fine"}]}`, "fine"},
		"empty":          {200, "application/json", "", "the status 200 and no body"},
		"accepted":       {202, "", "", "the status 202 and no body"},
		"no stream":      {200, "text/event-stream", "", "the event stream ended without the response"},
		"400":            {400, "text/plain", "secret", "status 400 Bad Request"},
		"400 of JSON":    {400, "application/json", `"error":{"code":-32602,"message":"text is too short"}`, "text is too short"},
		"401 of JSON":    {401, "application/json", `"error":{"code":-32001,"message":"expired"}`, "status 401 Unauthorized"},
		"403 of nothing": {403, "", "", "status 403 Forbidden"},
		"413":            {413, "text/html", "secret", "status 413 Request Entity Too Large"},
		"500 of JSON":    {500, "application/json", `"error":{"code":-32603,"message":"the disk is full"}`, "the disk is full"},
	} {
		f := http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			out.Header().Set("Content-Type", test.media)
			out.Header().Set("Mcp-Session-Id", "another")
			out.WriteHeader(test.status)
			reply := []byte(test.body)
			if strings.HasPrefix(test.body, `"`) {
				reply = replyTo(body, test.body)
			}
			if test.media == "text/event-stream" && len(reply) > 0 {
				reply = fmt.Appendf(nil, "data: %s\n\n", reply)
			}
			_, _ = out.Write(reply)
		})
		answer.Store(&f)
		if got := text(r.call("web_echo", `{"text":"x"}`)); !strings.Contains(got, test.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	close(finish)
	if got := <-slow; got != "slow done" {
		t.Errorf("the call beside them got %q", got)
	}
	if s := r.status("web"); s.State != mcpclient.Up || s.Restarts != 0 {
		t.Errorf("status is %+v", s)
	}
}

// replyTo is the response to a request, with this result or error.
func replyTo(request []byte, outcome string) []byte {
	var message struct{ ID json.RawMessage }
	_ = json.Unmarshal(request, &message)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, message.ID, outcome)
}

// TestHTTPSessionGone: a call whose session is forgotten is made again in a new one, however the server says so.
func TestHTTPSessionGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
	}{
		"the SDK's":         {},
		"404 of JSON":       {404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`},
		"404 with null":     {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`},
		"404 of other JSON": {404, `{"error":"Session not found"}`},
		"404 of HTML":       {404, `<html>`},
		"400":               {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
		"401 of text":       {401, "Unauthorized: session not found"},
		"410":               {410, ""},
		"200":               {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t)
			front := http.HandlerFunc(w.ServeHTTP)
			var seen, gone sync.Map // sessions
			if test.status != 0 {
				front = func(out http.ResponseWriter, req *http.Request) {
					id := req.Header.Get("Mcp-Session-Id")
					seen.Store(id, true)
					if _, ok := gone.Load(id); ok {
						out.Header().Set("Content-Type", "application/json")
						out.WriteHeader(test.status)
						_, _ = io.WriteString(out, test.body)
						return
					}
					w.ServeHTTP(out, req)
				}
			}
			server := httptest.NewServer(front)
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			r := newRig(t, mcpclient.Spec{Name: "web", URL: server.URL, ProtocolVersion: "2025-11-25"})
			r.call("web_echo", "{}")
			w.restart()
			seen.Range(func(id, _ any) bool {
				if id != "" {
					gone.Store(id, true)
				}
				return true
			})
			for _, words := range []string{"still here", "and here"} {
				if got := r.call("web_echo", `{"text":"`+words+`"}`); text(got) != words {
					t.Errorf("got %q", text(got))
				}
			}
		})
	}
}

// TestHTTPComesBack: a server that cannot be reached is skipped, and comes by itself when it can.
func TestHTTPComesBack(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	address := w.Listener.Addr().String()
	var refuse atomic.Bool
	refuse.Store(true)
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			http.Error(out, "no", http.StatusUnauthorized)
			return
		}
		w.ServeHTTP(out, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	r := newRig(t, mcpclient.Spec{Name: "web", URL: front.URL + "/?key=secret"})
	if s := r.status("web"); s.State != mcpclient.Down || !strings.Contains(s.Error, "Unauthorized") ||
		strings.Contains(s.Error, address) {
		t.Errorf("status is %+v", s)
	}
	refuse.Store(false)
	r.eventually("its tools", func() bool {
		return slices.Contains(r.tools(), "web_echo") &&
			r.status("web").State == mcpclient.Up
	})
	if s := r.status("web"); s.State != mcpclient.Up || s.Error != "" || s.Restarts == 0 {
		t.Errorf("status is %+v", s)
	}
	if log := r.log.String(); strings.Contains(log, "secret") {
		t.Errorf("the log shows the address's query: %s", log)
	}
}

// fakeCredentials give out "old" until it is refused.
type fakeCredentials struct{ renewed atomic.Int32 }

func (f *fakeCredentials) Credential(context.Context, string, string) (*broker.Credential, error) {
	if f.renewed.Load() > 0 {
		return &broker.Credential{Header: "Authorization", Value: "Bearer new"}, nil
	}
	return &broker.Credential{Header: "Authorization", Value: "Bearer old"}, nil
}

func (f *fakeCredentials) Renew(_ context.Context, _, name string, refused *broker.Credential, status int,
	_ []byte) (*broker.Credential, error) {
	if name != "oauth" || refused.Value != "Bearer old" || status != 401 {
		return nil, errors.New("not this one")
	}
	f.renewed.Add(1)
	return &broker.Credential{Header: "Authorization", Value: "Bearer new"}, nil
}

// TestCredential: a server's credential is renewed when the server refuses it, and the request is sent again.
func TestCredential(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			http.Error(out, "expired", http.StatusUnauthorized)
			return
		}
		w.ServeHTTP(out, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	credentials := new(fakeCredentials)
	r := newRigWith(t, func(o *mcpclient.Options) { o.Credentials = credentials },
		mcpclient.Spec{Name: "web", URL: front.URL, Credential: "oauth"})
	if got := text(r.call("web_echo", `{"text":"hello"}`)); got != "hello" || credentials.renewed.Load() != 1 {
		t.Errorf("got %q after %d renewals", got, credentials.renewed.Load())
	}
}

// onlyCredential is a credential that cannot be renewed.
type onlyCredential struct{ *fakeCredentials }

func (onlyCredential) Renew(context.Context, string, string, *broker.Credential, int, []byte) (*broker.Credential, error) {
	return nil, nil
}

// TestRefusedCredential: the status of a response outranks an error in its body, and the error names the credential.
func TestRefusedCredential(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRigWith(t, func(o *mcpclient.Options) { o.Credentials = onlyCredential{new(fakeCredentials)} },
		mcpclient.Spec{Name: "web", URL: w.URL, Credential: "oauth"})
	w.failWith(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out.WriteHeader(http.StatusUnauthorized)
		_, _ = out.Write(replyTo(body, `"error":{"code":-32603,"message":"token expired"}`))
	})
	want := "upstream server web failed: status 401 Unauthorized for the credential oauth: token expired"
	if got := text(r.call("web_echo", "{}")); got != want {
		t.Errorf("got %q", got)
	}
}

// TestTLS: an authority of the operator's own is trusted where the entry names it, and only there. A secret in a file
// is a header.
func TestTLS(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer 12345678" {
			http.Error(out, "who?", http.StatusUnauthorized)
			return
		}
		w.ServeHTTP(out, r)
	}))
	t.Cleanup(func() {
		secure.CloseClientConnections()
		secure.Close()
	})
	secure.Config.ErrorLog = nil
	dir := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	for name, data := range map[string][]byte{"ca.pem": certificate, "token": []byte("Bearer 12345678\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	header := map[string]mcpclient.Value{"Authorization": {Secret: secret.Source{File: filepath.Join(dir,
		"token")}}}
	r := newRigWith(t, func(o *mcpclient.Options) { o.Dir = dir },
		mcpclient.Spec{Name: "known", URL: secure.URL, Headers: header, TLS: mcpclient.TLS{CA: "ca.pem"}},
		mcpclient.Spec{Name: "unknown", URL: secure.URL, Headers: header})
	if got := text(r.call("known_echo", `{"text":"hello"}`)); got != "hello" {
		t.Errorf("got %q", got)
	}
	if s := r.status("unknown"); s.State != mcpclient.Down || !strings.Contains(s.Error, "certificate") {
		t.Errorf("status is %+v", s)
	}
}

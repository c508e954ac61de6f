package wasi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/wasm/component"
)

// Error codes of wasi:http by number.
const (
	httpAddress, httpTerminated, httpBusy, httpDenied = 4, 7, 11, 15
	httpRequestSize, httpURI, httpIncomplete          = 17, 19, 25
	httpResponseSize, httpTimeout, httpLoop           = 28, 33, 36
	httpInternal                                      = 38
)

const types = "wasi:http/types#"

// httpGuest returns a guest that may send requests to the server of a handler, and the server's authority.
func httpGuest(t *testing.T, options *httpbroker.Options, handler http.HandlerFunc) (*guest, string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	web, err := httpbroker.New([]grant.HTTPRule{{Name: "server", URL: server.URL, Private: true,
		Methods: []string{"GET", "POST", "PUT"}, Paths: []string{"/open/**"}}}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	return newGuest(t, wasi.Options{HTTP: web}), strings.TrimPrefix(server.URL, "http://")
}

// request describes a request of a guest.
type request struct {
	method    component.Case
	authority string
	path      string
	headers   [][2]string
	// body, if not nil, is written before the request is handled, or after it.
	body    []byte
	after   bool
	options any // request-options
}

// handle sends a request and returns the result of outgoing-handler.handle.
func (g *guest) handle(r request) component.Case {
	g.t.Helper()
	headers := []any{}
	for _, h := range r.headers {
		headers = append(headers, []any{h[0], []byte(h[1])})
	}
	out := g.do(types+"[constructor]outgoing-request", g.ok(types+"[static]fields.from-list", headers))
	g.ok(types+"[method]outgoing-request.set-method", out, r.method)
	g.ok(types+"[method]outgoing-request.set-scheme", out, component.Some(component.Case{}))
	g.ok(types+"[method]outgoing-request.set-authority", out, component.Some(r.authority))
	g.ok(types+"[method]outgoing-request.set-path-with-query", out, component.Some(r.path))
	options := component.None
	if r.options != nil {
		options = component.Some(r.options)
	}
	if r.body == nil {
		return g.do("wasi:http/outgoing-handler#handle", out, options).(component.Case)
	}
	body := g.ok(types+"[method]outgoing-request.body", out)
	var result component.Case
	if r.after {
		result = g.do("wasi:http/outgoing-handler#handle", out, options).(component.Case)
	}
	stream := g.ok(types+"[method]outgoing-body.write", body)
	for part := range slices.Chunk(r.body, 7) {
		g.ok("wasi:io/streams#[method]output-stream.blocking-write-and-flush", stream, part)
	}
	drop(stream)
	g.ok(types+"[static]outgoing-body.finish", body, component.None)
	if !r.after {
		result = g.do("wasi:http/outgoing-handler#handle", out, options).(component.Case)
	}
	return result
}

// await waits for the response and returns the inner result.
func (g *guest) await(future any) component.Case {
	g.t.Helper()
	ready := g.do(types+"[method]future-incoming-response.subscribe", future)
	g.do("wasi:io/poll#[method]pollable.block", ready)
	drop(ready)
	outer := g.do(types+"[method]future-incoming-response.get", future).(component.Case)
	if outer.Number != 1 {
		g.t.Fatal("a future that is ready has no response")
	}
	return outer.Value.(component.Case).Value.(component.Case)
}

// respond sends a request and returns the incoming-response.
func (g *guest) respond(r request) any {
	g.t.Helper()
	handled := g.handle(r)
	if handled.Number != 0 {
		g.t.Fatalf("%s: error %v, log %s", r.path, handled.Value, &g.log)
	}
	result := g.await(handled.Value)
	if result.Number != 0 {
		g.t.Fatalf("%s: error %v, log %s", r.path, result.Value, &g.log)
	}
	return result.Value
}

// body reads a response's body to its end, or to an error-code.
func (g *guest) body(response any) (text string, code component.Case) {
	g.t.Helper()
	body := g.ok(types+"[method]incoming-response.consume", response)
	stream := g.ok(types+"[method]incoming-body.stream", body)
	for {
		result := g.do("wasi:io/streams#[method]input-stream.blocking-read", stream, uint64(1<<20)).(component.Case)
		if result.Number == 0 {
			text += string(result.Value.([]byte))
			continue
		}
		if failed := result.Value.(component.Case); failed.Number == 0 {
			code = g.do(types+"http-error-code", failed.Value).(component.Case)
		}
		drop(stream)
		trailers := g.do(types+"[static]incoming-body.finish", body)
		end := g.do(types+"[method]future-trailers.get", trailers).(component.Case).Value.(component.Case).Value
		if failed := end.(component.Case).Number == 1; failed != (code.Number == 1) {
			g.t.Errorf("the trailers are %v after %v", end, code)
		} else if !failed {
			g.want(end, component.OK(component.None))
		}
		return text, code
	}
}

var post = component.Case{Number: 2}

func TestHTTP(t *testing.T) {
	t.Parallel()
	g, authority := httpGuest(t, nil, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["X-Two"] = []string{"1", "2"}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %q %s %s", r.Method, r.URL, body, r.Header.Get("X-Own"), r.Header.Get("X-Forwarded-For"))
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1") // is dropped
	})
	for _, after := range []bool{false, true} {
		response := g.respond(request{method: post, authority: authority, path: "/open/a?b=c", after: after,
			body:    []byte("a body in parts"),
			headers: [][2]string{{"X-Own", "1"}, {"Content-Length", "15"}, {"X-Forwarded-For", "::1"}}})
		g.want(g.do(types+"[method]incoming-response.status", response), uint64(http.StatusTeapot))
		headers := g.do(types+"[method]incoming-response.headers", response)
		g.want(g.do(types+"[method]fields.get", headers, "x-TWO"), []any{[]byte("1"), []byte("2")})
		g.want(g.failed(types+"[method]fields.append", headers, "a", []byte("b")), component.Case{Number: 2})
		text, _ := g.body(response)
		g.want(text, `POST /open/a?b=c "a body in parts" 1 `)
		g.failed(types+"[method]incoming-response.consume", response)
		drop(response)
	}
	text, _ := g.body(g.respond(request{authority: authority, path: "/open/none"}))
	g.want(text, `GET /open/none ""  `)
	if g.log.Len() > 0 {
		t.Errorf("the log has %s", &g.log)
	}
}

// Bodies come in parts, as the server sends them, and a guest that is not ready to wait gets nothing.
func TestResponseInParts(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	g, authority := httpGuest(t, nil, func(w http.ResponseWriter, r *http.Request) {
		for part := range next {
			fmt.Fprint(w, part)
			w.(http.Flusher).Flush()
		}
	})
	future := g.handle(request{authority: authority, path: "/open/"}).Value
	g.want(g.do(types+"[method]future-incoming-response.get", future), component.None)
	next <- "one"
	body := g.ok(types+"[method]incoming-response.consume", g.await(future).Value)
	g.want(g.do(types+"[method]future-incoming-response.get", future), component.Some(component.Failed(nil)))
	stream := g.ok(types+"[method]incoming-body.stream", body)
	g.failed(types+"[method]incoming-body.stream", body)
	const input = "wasi:io/streams#[method]input-stream."
	g.want(g.ok(input+"blocking-read", stream, uint64(2)), []byte("on"))
	g.want(g.ok(input+"blocking-read", stream, uint64(2)), []byte("e"))
	g.want(g.ok(input+"read", stream, uint64(2)), []byte{})
	ready := g.do(input+"subscribe", stream)
	g.want(g.do("wasi:io/poll#[method]pollable.ready", ready), false)
	next <- "two"
	g.want(g.do("wasi:io/poll#poll", []any{ready}), []any{uint64(0)})
	g.want(g.ok(input+"blocking-skip", stream, uint64(2)), uint64(2))
	close(next)
	g.want(g.ok(input+"blocking-read", stream, uint64(9)), []byte("o"))
	for range 2 {
		g.want(g.failed(input+"blocking-read", stream, uint64(9)), closed)
	}
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	g, authority := httpGuest(t, &httpbroker.Options{Limits: httpbroker.Limits{ResponseBody: 100, RequestBody: 10}},
		func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/open/loop":
				http.Redirect(w, r, "/open/loop", http.StatusFound)
			case "/open/out":
				http.Redirect(w, r, "/closed/", http.StatusFound)
			case "/open/short":
				w.Header().Set("Content-Length", "50")
				fmt.Fprint(w, "less")
			case "/open/long":
				w.Header().Set("Content-Length", "101")
				fmt.Fprint(w, strings.Repeat("x", 101))
			case "/open/reset":
				panic(http.ErrAbortHandler)
			}
		})
	for name, c := range map[string]struct {
		request request
		code    uint32
		log     string
	}{
		"path without grant":  {request{path: "/closed/"}, httpDenied, "permissions.http"},
		"other host":          {request{authority: "example.com", path: "/"}, httpDenied, "permissions.http"},
		"method not granted":  {request{method: component.Case{Number: 4}, path: "/open/"}, httpDenied, "permissions.http"},
		"redirect out":        {request{path: "/open/out"}, httpDenied, "permissions.http"},
		"redirects":           {request{path: "/open/loop"}, httpLoop, "more than 10 redirects"},
		"large response":      {request{path: "/open/long"}, httpResponseSize, "limit of 100 bytes"},
		"connection reset":    {request{method: post, path: "/open/reset", body: []byte{}}, httpTerminated, ""},
		"hidden dot segments": {request{path: "/open/%2e%2e/%252e%252e/closed"}, httpURI, "dot segments"},
	} {
		t.Run(name, func(t *testing.T) {
			g.t = t
			if c.request.authority == "" {
				c.request.authority = authority
			}
			g.log.Reset()
			result := g.handle(c.request)
			if result.Number == 0 {
				result = g.await(result.Value)
			}
			if code, ok := result.Value.(component.Case); !ok || code.Number != c.code || result.Number != 1 {
				t.Errorf("%+v, want error %d", result, c.code)
			}
			if !strings.Contains(g.log.String(), c.log) {
				t.Errorf("the log is %s", &g.log)
			}
		})
	}
	g.t = t
	text, code := g.body(g.respond(request{authority: authority, path: "/open/short"}))
	g.want(text, "less")
	g.want(code, component.Some(component.Case{Number: httpIncomplete}))

	// The request body.
	out := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
	stream := g.ok(types+"[method]outgoing-body.write", g.ok(types+"[method]outgoing-request.body", out))
	g.ok("wasi:io/streams#[method]output-stream.write", stream, make([]byte, 10))
	failed := g.failed("wasi:io/streams#[method]output-stream.write", stream, []byte("x")).(component.Case)
	g.want(g.do(types+"http-error-code", failed.Value),
		component.Some(component.Case{Number: httpRequestSize, Value: component.Some(uint64(10))}))
	g.want(g.failed("wasi:io/streams#[method]output-stream.check-write", stream), closed)
}

func TestHTTPWithoutGrant(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	g.want(g.handle(request{authority: "example.com", path: "/"}), component.Failed(component.Case{Number: httpDenied}))
	if !strings.Contains(g.log.String(), "plugin weather has no grant for HTTP requests") {
		t.Error(g.log.String())
	}
}

// resolver resolves every name to one address.
type resolver string

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(string(r))}, nil
}

func TestHostilePrivateAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"10.0.0.1", "169.254.169.254", "127.0.0.1", "::1"} {
		web, err := httpbroker.New([]grant.HTTPRule{{Name: "a", URL: "https://a.example.com"}},
			&httpbroker.Options{Resolver: resolver(address)})
		if err != nil {
			t.Fatal(err)
		}
		g := newGuest(t, wasi.Options{HTTP: web})
		out := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
		g.ok(types+"[method]outgoing-request.set-authority", out, component.Some("a.example.com"))
		future := g.ok("wasi:http/outgoing-handler#handle", out, component.None) // https, and the path /
		g.want(g.await(future), component.Failed(component.Case{Number: httpAddress}))
	}
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	g, authority := httpGuest(t, nil, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	unfinished := func() (future, body any) {
		out := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
		g.ok(types+"[method]outgoing-request.set-scheme", out, component.Some(component.Case{}))
		g.ok(types+"[method]outgoing-request.set-authority", out, component.Some(authority))
		g.ok(types+"[method]outgoing-request.set-path-with-query", out, component.Some("/open/"))
		body = g.ok(types+"[method]outgoing-request.body", out)
		g.failed(types+"[method]outgoing-request.body", out)
		return g.ok("wasi:http/outgoing-handler#handle", out, component.None), body
	}
	internal := func(future any, words string) {
		t.Helper()
		result := g.await(future)
		code, _ := result.Value.(component.Case)
		reason, _ := code.Value.(component.Case)
		if text, _ := reason.Value.(string); code.Number != httpInternal || !strings.Contains(text, words) {
			t.Errorf("%+v, want %q", result, words)
		}
	}
	future, _ := unfinished()
	internal(future, "call outgoing-body.finish first")
	future, body := unfinished()
	drop(body)
	internal(future, "without outgoing-body.finish")
	future, body = unfinished()
	trailers := g.ok(types+"[static]fields.from-list", []any{[]any{"X-Sum", []byte("1")}})
	g.failed(types+"[static]outgoing-body.finish", body, component.Some(trailers))
	internal(future, "no trailers")
	g.want(requests.Load(), int32(0))

	for range 10 { // more than the responses that a call may have open
		future, body = unfinished()
		g.ok(types+"[static]outgoing-body.finish", body, component.None)
		g.failed(types+"[static]outgoing-body.finish", body, component.None)
		if result := g.await(future); result.Number == 0 {
			drop(result.Value)
		} else {
			t.Errorf("%+v", result)
		}
	}
	g.want(requests.Load(), int32(10))
}

// The requests of a call are counted and end with it.
func TestHostileRequestFlood(t *testing.T) {
	t.Parallel()
	arrived, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	g, authority := httpGuest(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	for range 8 {
		if result := g.handle(request{authority: authority, path: "/open/"}); result.Number != 0 {
			t.Fatal(result)
		}
	}
	g.want(g.handle(request{authority: authority, path: "/open/"}), component.Failed(component.Case{Number: httpBusy}))
	for range 8 {
		<-arrived
	}
	g.end()
	for range 8 {
		<-ended
	}
}

func TestHTTPEndsWithTheContext(t *testing.T) {
	t.Parallel()
	g, authority := httpGuest(t, nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	g.ctx = ctx
	future := g.handle(request{authority: authority, path: "/open/"}).Value
	ready := g.do(types+"[method]future-incoming-response.subscribe", future)
	cancel()
	if err := g.trap("wasi:io/poll#poll", []any{ready}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The guest's own timeouts: the monotonic clock is at their end at once.
func TestRequestOptions(t *testing.T) {
	t.Parallel()
	g, authority := httpGuest(t, nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	options := g.do(types + "[constructor]request-options")
	for _, name := range []string{"connect-timeout", "first-byte-timeout", "between-bytes-timeout"} {
		g.want(g.do(types+"[method]request-options."+name, options), component.None)
		g.ok(types+"[method]request-options.set-"+name, options, component.Some(uint64(1)))
		g.want(g.do(types+"[method]request-options."+name, options), component.Some(uint64(1)))
	}
	result := g.await(g.handle(request{authority: authority, path: "/open/", options: options}).Value)
	g.want(result, component.Failed(component.Case{Number: httpTimeout}))
}

func TestFields(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	entry := func(name, value string) any { return []any{name, []byte(value)} }
	f := g.ok(types+"[static]fields.from-list", []any{entry("A", "1"), entry("b", "2"), entry("a", "")})
	g.want(g.do(types+"[method]fields.get", f, "a"), []any{[]byte("1"), []byte("")})
	g.want(g.do(types+"[method]fields.get", f, "c"), []any{})
	g.want(g.do(types+"[method]fields.has", f, "B"), true)
	g.want(g.do(types+"[method]fields.has", f, "c"), false)
	clone := g.do(types+"[method]fields.clone", f)
	g.ok(types+"[method]fields.set", f, "A", []any{[]byte("3")})
	g.ok(types+"[method]fields.delete", f, "B")
	g.ok(types+"[method]fields.append", f, "a", []byte("4"))
	g.want(g.do(types+"[method]fields.entries", f), []any{entry("A", "3"), entry("a", "4")})
	g.want(g.do(types+"[method]fields.entries", clone), []any{entry("A", "1"), entry("b", "2"), entry("a", "")})

	child := g.do(types+"[method]outgoing-request.headers", g.do(types+"[constructor]outgoing-request", f))
	for function, args := range map[string][]any{"set": {"a", []any{}}, "delete": {"a"}, "append": {"a", []byte("b")}} {
		g.want(g.failed(types+"[method]fields."+function, append([]any{child}, args...)...), component.Case{Number: 2})
	}
}

func TestHostileFields(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	f := g.do(types + "[constructor]fields")
	for name, c := range map[string]struct {
		name, value string
		code        uint32
	}{
		"line break in a value": {"a", "b\r\nHost: c", 0}, "line break in a name": {"a\r\nb", "", 0},
		"NUL": {"a", "\x00", 0}, "no name": {"", "", 0}, "space": {"a b", "", 0}, "colon": {"a:b", "", 0},
		"host": {"Host", "a", 1}, "connection": {"CONNECTION", "close", 1}, "upgrade": {"upgrade", "h2c", 1},
		"transfer-encoding": {"Transfer-Encoding", "chunked", 1}, "proxy": {"Proxy-Authorization", "a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g.t = t
			want := component.Case{Number: c.code}
			g.want(g.failed(types+"[method]fields.append", f, c.name, []byte(c.value)), want)
			g.want(g.failed(types+"[method]fields.set", f, c.name, []any{[]byte(c.value)}), want)
			g.want(g.failed(types+"[static]fields.from-list", []any{[]any{c.name, []byte(c.value)}}), want)
		})
	}
	g.t = t
	g.want(g.do(types+"[method]fields.entries", f), []any{})
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "headers of more than 1048576 bytes") {
			t.Errorf("the flood ends with %v", err)
		}
		drop(f) // gives the room back
		g.ok(types+"[method]fields.append", g.do(types+"[constructor]fields"), "a", []byte("b"))
	}()
	for {
		g.ok(types+"[method]fields.append", f, "a", []byte(strings.Repeat("x", 1<<10)))
	}
}

// TestHostileHeaders: headers are counted as long as anything holds them, also after the guest has dropped the fields
// and requests themselves.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(g *guest, request any){
		"views of requests that are dropped": func(g *guest, request any) {
			g.do(types+"[method]outgoing-request.headers", request)
			drop(request)
		},
		"requests that wait for their body": func(g *guest, request any) {
			g.ok(types+"[method]outgoing-request.body", request)
			g.ok("wasi:http/outgoing-handler#handle", request, component.None)
		},
		"the same request, handled again": func(g *guest, request any) {
			g.ok(types+"[method]outgoing-request.body", request)
			for range 2 {
				g.ok("wasi:http/outgoing-handler#handle", request, component.None)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := httpGuest(t, nil, nil)
			defer func() {
				if _, ok := recover().(error); !ok {
					t.Error("the host holds 10 MiB of headers")
				}
			}()
			for range 100 {
				f := g.do(types + "[constructor]fields")
				g.ok(types+"[method]fields.append", f, "a", []byte(strings.Repeat("x", 100<<10)))
				hold(g, g.do(types+"[constructor]outgoing-request", f))
			}
		})
	}
}

// TestHostileRequests: the texts of requests count as headers, and what they hold beside texts ends the call.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for setter, value := range map[string]component.Case{
		"set-method":          {Number: 9, Value: long},
		"set-path-with-query": component.Some("/" + long),
		"set-scheme":          component.Some(component.Case{Number: 2, Value: long}),
		"set-authority":       component.Some(long),
	} {
		t.Run(setter, func(t *testing.T) {
			g, _ := httpGuest(t, nil, nil)
			request := func() any {
				return g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
			}
			setter := types + "[method]outgoing-request." + setter
			for range 50 { // a value that replaces another, and requests that are gone
				r := request()
				g.ok(setter, r, value)
				g.ok(setter, r, value)
				drop(r)
			}
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "headers of more than 1048576 bytes") {
					t.Errorf("the flood ends with %v", err)
				}
			}()
			for range 50 {
				g.ok(setter, request(), value)
			}
		})
	}
	g, _ := httpGuest(t, nil, nil)
	r := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
	odd := component.Case{Value: []byte(long)} // GET with a payload
	if err := g.trap(types+"[method]outgoing-request.set-method", r, odd); !strings.Contains(err.Error(), "other types") {
		t.Error(err)
	}
	options := g.do(types + "[constructor]request-options")
	odd = component.Some([]byte(long))
	err := g.trap(types+"[method]request-options.set-connect-timeout", options, odd)
	if !strings.Contains(err.Error(), "other types") {
		t.Error(err)
	}
}

// TestStalledRequest: a request that failed, because the guest waited for it in vain, is not sent later.
func TestStalledRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	g, authority := httpGuest(t, nil, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	out := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
	g.ok(types+"[method]outgoing-request.set-scheme", out, component.Some(component.Case{}))
	g.ok(types+"[method]outgoing-request.set-authority", out, component.Some(authority))
	g.ok(types+"[method]outgoing-request.set-path-with-query", out, component.Some("/open/"))
	body := g.ok(types+"[method]outgoing-request.body", out)
	g.want(g.await(g.ok("wasi:http/outgoing-handler#handle", out, component.None)).Number, uint32(1))
	g.ok(types+"[static]outgoing-body.finish", body, component.None)
	g.end()
	g.want(requests.Load(), int32(0))
}

func TestHostileURLs(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	out := g.do(types+"[constructor]outgoing-request", g.do(types+"[constructor]fields"))
	for _, authority := range []string{"", "a/b", "a?b", "a#b", "u@a", "a b", "a\r\nb", ":80", "a:99999", "a:b", `a\b`} {
		if g.do(types+"[method]outgoing-request.set-authority", out, component.Some(authority)) != component.Failed(nil) {
			t.Errorf("the authority %q is accepted", authority)
		}
	}
	for _, path := range []string{"a", "@b", ":80/", "/a b", "/a\r\nHost: b", "/a#b", "/\x00"} {
		if g.do(types+"[method]outgoing-request.set-path-with-query", out, component.Some(path)) != component.Failed(nil) {
			t.Errorf("the path %q is accepted", path)
		}
	}
	for _, scheme := range []string{"", "a b", "1", "http://b"} {
		other := component.Some(component.Case{Number: 2, Value: scheme})
		if g.do(types+"[method]outgoing-request.set-scheme", out, other) != component.Failed(nil) {
			t.Errorf("the scheme %q is accepted", scheme)
		}
	}
	for _, method := range []string{"", "A B", "A\r\n"} {
		other := component.Case{Number: 9, Value: method}
		if g.do(types+"[method]outgoing-request.set-method", out, other) != component.Failed(nil) {
			t.Errorf("the method %q is accepted", method)
		}
	}
	for _, authority := range []string{"a", "a.test:8080", "[::1]:80", "127.0.0.1"} {
		g.ok(types+"[method]outgoing-request.set-authority", out, component.Some(authority))
	}
	err := g.trap(types+"[constructor]outgoing-response", g.do(types+"[constructor]fields"))
	if !strings.Contains(err.Error(), "calls a component through its tools") {
		t.Error(err)
	}
}

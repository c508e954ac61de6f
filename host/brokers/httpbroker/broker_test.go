package httpbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func newBroker(t testing.TB, options *Options, rules ...grant.HTTPRule) *Broker {
	t.Helper()
	b, err := New(rules, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func newCall(t testing.TB) *broker.Call {
	call := &broker.Call{Plugin: "weather", Tool: "get_weather"}
	t.Cleanup(func() { _ = call.Close() })
	return call
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// everything grants all methods under url.
func everything(url string) grant.HTTPRule {
	return grant.HTTPRule{Name: "test", URL: url, Methods: []string{"GET", "HEAD", "POST", "PUT",
		"PATCH", "DELETE", "OPTIONS"}}
}

type answer struct {
	*Response
	body string
}

// do sends a request in a call of its own and reads the whole answer.
func do(t testing.TB, b *Broker, head *abi.HTTPRequest, body string) (answer, error) {
	t.Helper()
	return doCtx(t, t.Context(), b, head, body)
}

func doCtx(t testing.TB, ctx context.Context, b *Broker, head *abi.HTTPRequest, body string) (answer, error) {
	t.Helper()
	call := &broker.Call{Plugin: "weather", Tool: "get_weather"}
	defer call.Close()
	resp, err := b.Do(ctx, call, head, []byte(body))
	if err != nil {
		return answer{}, err
	}
	data, err := io.ReadAll(resp.Body)
	return answer{resp, string(data)}, err
}

func get(t testing.TB, b *Broker, url string) (answer, error) {
	t.Helper()
	return do(t, b, &abi.HTTPRequest{URL: url}, "")
}

func mustGet(t testing.TB, b *Broker, url string) answer {
	t.Helper()
	a, err := get(t, b, url)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return a
}

// wantCode checks that err holds an *abi.Error with the code and, in its text, each of the words.
func wantCode(t testing.TB, err error, code string, words ...string) {
	t.Helper()
	var own *abi.Error
	if !errors.As(err, &own) {
		t.Fatalf("error %v (%T), want an *abi.Error with code %q", err, err, code)
	}
	if own.Code != code {
		t.Errorf("code %q, want %q: %v", own.Code, code, err)
	}
	for _, w := range words {
		if !strings.Contains(own.Message, w) {
			t.Errorf("message %q lacks %q", own.Message, w)
		}
	}
}

// names resolves from a map.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, a := range n[host] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if addrs == nil {
		return nil, fmt.Errorf("no name %q in this test", host)
	}
	return addrs, nil
}

// network stands in for the network of every rule.
type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

func (n network) under(b *Broker) {
	for _, r := range b.rules {
		r.transport = n
	}
}

// reply makes an answer; headers are given as "Name: value".
func reply(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
}

func TestGet(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-test", "1")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.UserAgent())
	})
	b := newBroker(t, nil, everything(s.URL))
	a := mustGet(t, b, s.URL+"/a/../b?q=1#part")
	if a.Status != http.StatusTeapot || a.Header.Get("X-Test") != "1" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
	if want := "GET /b?q=1 hako (+https://github.com/hako-run/hako)"; a.body != want {
		t.Errorf("server saw %q, want %q", a.body, want)
	}
	if want := s.URL + "/b?q=1"; a.URL != want {
		t.Errorf("URL %q, want %q", a.URL, want)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %s", r.Method, r.Header.Get("Content-Type"), r.ContentLength, body)
	})
	b := newBroker(t, nil, everything(s.URL))
	a, err := do(t, b, &abi.HTTPRequest{Method: "post", URL: s.URL,
		Headers: map[string][]string{"content-type": {"text/plain"}}}, "hello")
	if err != nil || a.body != "POST text/plain 5 hello" {
		t.Errorf("got %q, %v", a.body, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is meant to fail
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Run("trusted", func(t *testing.T) {
		roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		b := newBroker(t, &Options{RootCAs: roots}, everything(s.URL))
		if a := mustGet(t, b, s.URL); a.body != "HTTP/2.0" {
			t.Errorf("protocol %s", a.body)
		}
	})
	t.Run("not trusted", func(t *testing.T) {
		_, err := get(t, newBroker(t, nil, everything(s.URL)), s.URL)
		wantCode(t, err, abi.CodeNetwork, "certificate")
	})
}

func TestNoEnvironmentProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "direct") })
	host := strings.Replace(s.URL, "127.0.0.1", "api.test", 1)
	b := newBroker(t, &Options{Resolver: names{"api.test": {"127.0.0.1"}}},
		grant.HTTPRule{Name: "api", URL: host, Private: true})
	if a := mustGet(t, b, host); a.body != "direct" {
		t.Errorf("got %q", a.body)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule    grant.HTTPRule
		options *Options
		want    string
	}{
		"scheme":          {rule: grant.HTTPRule{URL: "ftp://a.test"}, want: "only http and https"},
		"no host":         {rule: grant.HTTPRule{URL: "https:///x"}, want: "no host"},
		"password":        {rule: grant.HTTPRule{URL: "https://u:p@a.test"}, want: "Authorization"},
		"query":           {rule: grant.HTTPRule{URL: "https://a.test/?x=1"}, want: "query"},
		"glob":            {rule: grant.HTTPRule{URL: "https://a.test", Paths: []string{"a["}}, want: "glob"},
		"encoded slash":   {rule: grant.HTTPRule{URL: "https://a.test/a%2Fb"}, want: "encoded slashes"},
		"port":            {rule: grant.HTTPRule{URL: "https://a.test:0"}, want: "port"},
		"star inside":     {rule: grant.HTTPRule{URL: "https://a.*.test"}, want: "not a valid name"},
		"star of address": {rule: grant.HTTPRule{URL: "https://*.10.0.0.1"}, want: "no subdomains"},
		"lower-case":      {rule: grant.HTTPRule{URL: "https://a.test", Methods: []string{"get"}}, want: "upper case"},
		"tunnel": {rule: grant.HTTPRule{URL: "https://a.test", Methods: []string{"CONNECT"}},
			want: "cannot be granted"},
		"negative limit": {options: &Options{Limits: Limits{ResponseBody: -1}},
			rule: everything("https://a.test"), want: "negative"},
		"unknown rule": {options: &Options{Rules: map[string]RuleOptions{"tset": {}}},
			rule: everything("https://a.test"), want: `"tset"`},
		"broken recording": {options: &Options{Replay: &Recordings{Exchanges: make([]Exchange, 1)}},
			rule: everything("https://a.test"), want: "exchange 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New([]grant.HTTPRule{c.rule}, c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

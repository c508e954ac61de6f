package httpbroker

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

const secret = "s3cret/Token+with=parts"

// oneCredential gives every tenant a secret, and another one once the first was refused.
type oneCredential struct {
	mu      sync.Mutex
	refused []int
	fails   error
	stale   bool // nothing else to try
	header  string
}

func (o *oneCredential) Credential(_ context.Context, tenant, name string) (*broker.Credential, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fails != nil {
		return nil, o.fails
	}
	return o.make(tenant, fmt.Sprint(secret, len(o.refused))), nil
}

func (o *oneCredential) make(tenant, text string) *broker.Credential {
	c := &broker.Credential{Header: "Authorization", Value: "Bearer " + text, Secrets: []string{text}, Account: "one",
		Public:  map[string]string{"company_id": "7"},
		Renewal: map[string]string{broker.RenewCommand: "hako connect kot --tenant " + tenant}}
	if o.header != "" {
		c.Header, c.Value = o.header, text
	}
	return c
}

func (o *oneCredential) Renew(_ context.Context, tenant, name string, refused *broker.Credential, status int,
	body []byte) (*broker.Credential, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stale || !strings.Contains(string(body), "expired") {
		return nil, nil
	}
	o.refused = append(o.refused, status)
	return o.make(tenant, fmt.Sprint(secret, len(o.refused))), nil
}

// credentialed grants everything under url with the credential "kot".
func credentialed(url string) grant.HTTPRule {
	r := everything(url)
	r.Credential = "kot"
	return r
}

// TestRefusedCredential checks that a guest learns how the operator renews a credential when the server refuses it, and
// only then.
func TestRefusedCredential(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "", 404: "", 401: "hako connect kot --tenant acme",
		403: "hako connect kot --tenant acme"} {
		b := newBroker(t, &Options{Credentials: &oneCredential{}}, credentialed("https://a.test"))
		network(func(*http.Request) (*http.Response, error) { return reply(status, "no"), nil }).under(b)
		call := newCall(t)
		call.Tenant = "acme"
		a, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: "https://a.test"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Credential[broker.RenewCommand]; got != want || a.Credential["company_id"] != "7" {
			t.Errorf("HTTP %d: the guest learns %q of the credential, want %q", status, a.Credential, want)
		}
	}
}

func TestCredentialIsApplied(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Authorization", "X-Api-Key"} {
		var got string
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get(header) })
		c := &oneCredential{}
		want := "Bearer " + secret + "0"
		if header != "Authorization" {
			c.header, want = header, secret+"0"
		}
		b := newBroker(t, &Options{Credentials: c}, credentialed(s.URL))
		a := mustGet(t, b, s.URL)
		if got != want {
			t.Errorf("%s: the server got %q, want %q", header, got, want)
		}
		if a.Credential["company_id"] != "7" {
			t.Errorf("public facts: %v", a.Credential)
		}
	}
}

func TestCredentialGoesNowhereElse(t *testing.T) {
	t.Parallel()
	var got []string
	see := func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization"))
		if to := r.FormValue("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}
	own, other := serve(t, see), serve(t, see)
	withOwn := "Bearer " + secret + "0"
	tests := map[string]struct {
		url  string
		want []string
	}{
		"same origin":  {own.URL + "/a?to=" + own.URL + "/b", []string{"/a " + withOwn, "/b " + withOwn}},
		"other origin": {own.URL + "/a?to=" + other.URL + "/b", []string{"/a " + withOwn, "/b "}},
		"there and back": {own.URL + "/a?to=" + url.QueryEscape(other.URL+"/b?to="+own.URL+"/c"),
			[]string{"/a " + withOwn, "/b ", "/c "}},
		"other name": {own.URL + "/a?to=" + strings.Replace(own.URL, "127.0.0.1", "localhost", 1) + "/b",
			[]string{"/a " + withOwn, "/b "}},
		"rule without it":    {other.URL + "/a", []string{"/a "}},
		"to one that has it": {other.URL + "/a?to=" + own.URL + "/b", []string{"/a ", "/b "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got = nil
			named := everything(strings.Replace(own.URL, "127.0.0.1", "localhost", 1))
			named.Name, named.Credential = "named", "kot"
			second := everything(other.URL)
			second.Name = "other"
			b := newBroker(t, &Options{Credentials: &oneCredential{}, CacheBytes: -1},
				credentialed(own.URL), named, second)
			mustGet(t, b, test.url)
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCredentialIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	failing := &oneCredential{fails: errors.Join(errors.New("/etc/inside"),
		&abi.Error{Code: abi.CodeCredential, Message: "run hako connect"})}
	private := credentialed("http://10.1.2.3")
	private.Private = true
	tests := map[string]struct {
		options *Options
		rule    grant.HTTPRule
		head    abi.HTTPRequest
		code    string
		words   []string
	}{
		"guest's own header": {nil, credentialed(s.URL), abi.HTTPRequest{URL: s.URL,
			Headers: map[string][]string{"authorization": {"x"}}}, abi.CodeInvalid,
			[]string{"Authorization", "cannot be set", "kot"}},
		"in pieces": {nil, credentialed(s.URL), abi.HTTPRequest{URL: s.URL,
			Headers: map[string][]string{"range": {"bytes=0-3"}}}, abi.CodeInvalid, []string{"Range"}},
		"in the clear": {nil, private, abi.HTTPRequest{URL: "http://10.1.2.3/"}, abi.CodeNotGranted,
			[]string{"without encryption", "use https"}},
		"through a proxy": {&Options{Proxy: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}, credentialed(s.URL),
			abi.HTTPRequest{URL: s.URL}, abi.CodeNotGranted, []string{"without encryption"}},
		"not usable": {&Options{Credentials: failing}, credentialed(s.URL), abi.HTTPRequest{URL: s.URL},
			abi.CodeCredential, []string{"run hako connect"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			options := Options{}
			if test.options != nil {
				options = *test.options
			}
			if options.Credentials == nil {
				options.Credentials = &oneCredential{}
			}
			_, err := do(t, newBroker(t, &options, test.rule), &test.head, "")
			wantCode(t, err, test.code, test.words...)
			if strings.Contains(err.Error(), "inside") {
				t.Errorf("the error tells of the host's inside: %v", err)
			}
		})
	}
	_, err := do(t, newBroker(t, nil, credentialed(s.URL)), &abi.HTTPRequest{URL: s.URL}, "")
	wantCode(t, err, abi.CodeCredential, "credentials.kot")
}

func TestCredentialNeedsAHost(t *testing.T) {
	t.Parallel()
	for url, allowed := range map[string]bool{"https://*": false, "https://*.com": false,
		"https://*.example.com": true, "https://example.com": true} {
		_, err := New([]grant.HTTPRule{credentialed(url)}, nil)
		if (err == nil) != allowed || err != nil && !strings.Contains(err.Error(),
			"one host or the hosts of one domain") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestCredentialIsRenewedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		body   string
		stale  bool
		asked  int // requests
		want   int // status
	}{
		"expired, 401":         {401, `{"code":"expired"}`, false, 2, 200},
		"expired, 403":         {403, `{"code":"expired"}`, false, 2, 200},
		"another reason":       {403, `{"code":"plan"}`, false, 1, 403},
		"nothing else":         {401, `{"code":"expired"}`, true, 1, 401},
		"another status":       {400, `{"code":"expired"}`, false, 1, 400},
		"refused again, twice": {401, `{"code":"expired","always":true}`, false, 2, 401},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) != "sent" {
					t.Errorf("body %q", body)
				}
				if asked++; asked == 1 || strings.Contains(test.body, "always") {
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body)
				}
			})
			var recorded []Exchange
			options := &Options{Credentials: &oneCredential{stale: test.stale},
				Record: func(x Exchange) { recorded = append(recorded, x) }}
			a, err := do(t, newBroker(t, options, credentialed(s.URL)),
				&abi.HTTPRequest{Method: "POST", URL: s.URL}, "sent")
			if err != nil {
				t.Fatal(err)
			}
			if asked != test.asked || a.Status != test.want {
				t.Errorf("%d requests and status %d, want %d and %d", asked, a.Status, test.asked, test.want)
			}
			if test.want >= 400 && a.body != test.body {
				t.Errorf("body %q, want %q", a.body, test.body)
			}
			if len(recorded) != 1 {
				t.Errorf("%d exchanges recorded", len(recorded))
			}
		})
	}
}

// TestEchoIsMasked checks that a server that repeats what it is sent gives a guest nothing, wherever it does and however
// it cuts it.
func TestEchoIsMasked(t *testing.T) {
	t.Parallel()
	sent := secret + "0"
	encodings := map[string]string{
		"plain":             sent,
		"twice":             sent + sent,
		"base64":            base64.StdEncoding.EncodeToString([]byte(sent)),
		"base64 of header":  base64.StdEncoding.EncodeToString([]byte("Bearer " + sent)),
		"base64url, offset": base64.URLEncoding.EncodeToString([]byte("x" + sent + "tail")),
		"query":             url.QueryEscape(sent),
		"json":              `{"headers":{"Authorization":"Bearer ` + strings.ReplaceAll(sent, "/", `\/`) + `"}}`,
	}
	var text string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", text)
		w.Header().Set("Set-Cookie", "a="+r.Header.Get("Authorization"))
		for i := range len(text) { // one byte a chunk
			_, _ = io.WriteString(w, text[i:i+1])
			_ = http.NewResponseController(w).Flush()
		}
	})
	var recorded []Exchange
	for name, encoded := range encodings {
		for _, record := range []bool{false, true} {
			text = "before " + encoded + " after"
			options := &Options{Credentials: &oneCredential{}}
			if record {
				options.Record = func(x Exchange) { recorded = append(recorded, x) }
			}
			a := mustGet(t, newBroker(t, options, credentialed(s.URL)), s.URL+"/"+url.PathEscape(name))
			all := fmt.Sprint(a.body, a.Header, recorded)
			for _, encoded := range encodings {
				if strings.Contains(all, encoded) {
					t.Errorf("%s: the guest sees %s", name, encoded)
				}
			}
			if !strings.HasPrefix(a.body, "before ") || !strings.HasSuffix(a.body, " after") ||
				len(a.body) != len(text) || !strings.Contains(a.body, "********") {
				t.Errorf("%s: body %q", name, a.body)
			}
		}
	}
}

func TestEchoInErrorsIsMasked(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"HTTP/1.1 " + secret + "0 what\r\n\r\n",
		secret + "0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: " + secret + "0\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://" + secret + "0.example.com/\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://other.example.com/Token+with=parts0/" + secret + "0\r\n\r\n",
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		})
		options := &Options{Credentials: &oneCredential{}, Rules: map[string]RuleOptions{"test": {Retries: -1}}}
		_, err := get(t, newBroker(t, options, credentialed(s.URL)), s.URL)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("answer %q: error %v", answer, err)
		}
	}
}

func TestUnreadableEncodingIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	_, err := get(t, newBroker(t, &Options{Credentials: &oneCredential{}}, credentialed(s.URL)), s.URL)
	wantCode(t, err, abi.CodeNetwork, "encoded as", "br")
	if _, err := get(t, newBroker(t, nil, everything(s.URL)), s.URL); err != nil {
		t.Errorf("without a credential: %v", err)
	}
}

func TestCacheIsKeptByTenant(t *testing.T) {
	t.Parallel()
	asked := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, asked)
	})
	credentials := &oneCredential{}
	b := newBroker(t, &Options{Credentials: credentials}, credentialed(s.URL))
	ask := func(tenant string) string {
		call := &broker.Call{Plugin: "weather", Tool: "get_weather", Tenant: tenant}
		defer call.Close()
		resp, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: s.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.Credential["company_id"] != "7" {
			t.Fatal(err, resp.Credential)
		}
		return string(body)
	}
	got := ask("acme") + ask("acme") + ask("") + ask("other") + ask("acme")
	if got != "11231" {
		t.Errorf("got %s, want 11231: one answer for each tenant", got)
	}
}

func TestReplayNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	recordings := &Recordings{Exchanges: []Exchange{{RecordedRequest{Method: "GET", URL: "https://api.example.com/a"},
		RecordedResponse{Status: 200, Body: "recorded"}}}}
	a := mustGet(t, newBroker(t, &Options{Replay: recordings}, credentialed("https://api.example.com")),
		"https://api.example.com/a")
	if a.body != "recorded" || a.Credential != nil {
		t.Errorf("got %q %v", a.body, a.Credential)
	}
}

// FuzzMask checks that no cut of a stream shows a secret, and that everything else comes through.
func FuzzMask(f *testing.F) {
	f.Add("abcabcabd", "abcabd", 3)
	f.Add("xx"+secret+secret, secret, 1)
	f.Add(strings.Repeat("a", 40), strings.Repeat("a", 9), 7)
	f.Fuzz(func(t *testing.T, text, secret string, chunk int) {
		if len(secret) < 8 {
			return
		}
		m := newMask([]string{secret})
		whole := []byte(text)
		m.cover(whole)
		body := newMaskedBody(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), m)
		var got bytes.Buffer
		buffer := make([]byte, max(1, chunk%50))
		for {
			n, err := body.Read(buffer)
			got.Write(buffer[:n])
			if errors.Is(err, io.EOF) {
				break
			}
		}
		if got.Len() != len(text) {
			t.Fatalf("%d bytes, want %d", got.Len(), len(text))
		}
		if strings.Trim(secret, "*") != "" && strings.Contains(got.String(), secret) {
			t.Fatalf("%q shows %q", got.String(), secret)
		}
	})
}

package httpbroker

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileHeaders: what servers and gateways take for more than a guest may say does not reach them, however it is
// spelled.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	var seen http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })
	b := newBroker(t, nil, everything(s.URL))
	for _, name := range []string{
		"X-Forwarded-For", "x_forwarded_for", "X_FORWARDED_HOST", "X.Forwarded.Proto", "X-Forwarded_Port",
		"X-Forwarded-User", "X-Forwarded", "Forwarded",
		"forwarded_for", "Client_IP", "X-Client-IP", "True-Client-Ip", "CF_Connecting_IP", "Fastly-Client-IP",
		"X_Real_IP", "X-Cluster-Client-IP",
		"X-Originating-IP", "X_Remote_User", "Remote-User", "Remote_Addr", "X-Envoy-Original-Path", "X_Original_URL",
		"X-Original-URI", "X-Original-Method",
		"X_Rewrite_Url", "X-Host", "X-HTTP-Host-Override", "X_HTTP_Method_Override", "X-HTTP-Method",
		"x_method_override", "Method-Override",
		"X-Middleware-Subrequest", "X-Goog-Iap-Jwt-Assertion", "X-Goog-Authenticated-User-Email", "X_Amzn_Oidc_Data",
		"X-Appengine-User-Email",
		"X-Ms-Client-Principal", "X-SSL-Client-Cert", "X-Client-Cert", "X-ARR-ClientCert", "Proxy_Authorization",
		"Proxy-Connection", "X-Proxy-User",
		"Content_Length", "Transfer_Encoding", "TE", "Trailer", "Upgrade", "HTTP2_Settings", "Keep_Alive", "Expect",
		"Early-Data", "CDN-Loop",
		"Max-Forwards", "Alt-Used", "Host", "HOST", "Via", "Connection",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := do(t, b, &abi.HTTPRequest{URL: s.URL, Headers: map[string][]string{name: {"evil"},
				"X-Custom": {"fine"}}}, ""); err != nil {
				t.Fatal(err)
			}
			for sent, values := range seen {
				if strings.Contains(fmt.Sprint(values), "evil") {
					t.Errorf("the server gets %s", sent)
				}
			}
			if seen.Get("X-Custom") != "fine" {
				t.Error("other headers are lost")
			}
		})
	}
	for name, connection := range map[string][]string{
		"named by Connection": {"X-Custom"}, "in another spelling": {"keep-alive, x_custom"},
		"in a second field": {"close", "a, X-CUSTOM ,b"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := do(t, b, &abi.HTTPRequest{URL: s.URL, Headers: map[string][]string{"connection": connection,
				"X-Custom": {"evil"}}}, ""); err != nil {
				t.Fatal(err)
			}
			if seen.Get("X-Custom") != "" {
				t.Error("the server gets it")
			}
		})
	}
	credentials := newBroker(t, &Options{Credentials: &oneCredential{header: "X-Api-Key"}}, credentialed(s.URL))
	for _, name := range []string{"X-Api-Key", "x_api_key", "X.API.KEY", "X-API_KEY", "Range", "rAnGe"} {
		t.Run("beside a credential "+name, func(t *testing.T) {
			_, err := do(t, credentials, &abi.HTTPRequest{URL: s.URL, Headers: map[string][]string{name: {"evil"}}}, "")
			wantCode(t, err, abi.CodeInvalid, "cannot be set here")
		})
	}
	for _, name := range []string{"X-Api-Version", "X-Request-Id", "X-Methodology", "Content-Type", "If-None-Match",
		"Cf-Access-Client-Id", "Referer", "Origin", "Cookie"} {
		t.Run("allowed "+name, func(t *testing.T) {
			if _, err := do(t, b, &abi.HTTPRequest{URL: s.URL, Headers: map[string][]string{name: {"fine"}}},
				""); err != nil || seen.Get(name) != "fine" {
				t.Errorf("%v, the server gets %q", err, seen.Get(name))
			}
		})
	}
}

// each writes every byte of a text in a form of its own.
func each(text string, form func(i int, c byte) string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(form(i, text[i]))
	}
	return b.String()
}

func format(layout string) func(int, byte) string {
	return func(_ int, c byte) string { return fmt.Sprintf(layout, c) }
}

// TestHostileMasking: a server that repeats a credential shows it to the guest in no usual encoding, and in no mixture
// of them.
func TestHostileMasking(t *testing.T) {
	t.Parallel()
	mixture := []string{"%c", "%%%02x", "%%%02X", `\u%04x`, `\u%04X`, `\x%02x`, "&#%d;", "&#x%x;", `\%03o`, `\u{%x}`,
		"%%25%02x", `%%5Cu%04x`, `\u0025%02x`}
	forms := map[string]func(secret string) string{
		"percent, all of it":   func(s string) string { return each(s, format("%%%02x")) },
		"percent, in capitals": func(s string) string { return each(s, format("%%%02X")) },
		"percent, every other": func(s string) string {
			return each(s, func(i int, c byte) string { return fmt.Sprintf(mixture[i%2], c) })
		},
		"percent, twice":       func(s string) string { return each(s, format("%%25%02x")) },
		"percent, thrice":      func(s string) string { return each(s, format("%%2525%02x")) },
		"the query of a query": func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"percent by percent": func(s string) string {
			return each(each(s, format("%%%02x")), func(i int, c byte) string { return fmt.Sprintf("%%%02x", c) })
		},
		"JSON escapes":              func(s string) string { return each(s, format(`\u%04x`)) },
		"JSON escapes, in capitals": func(s string) string { return each(s, format(`\u%04X`)) },
		"JSON in JSON":              func(s string) string { return each(s, format(`\\u%04x`)) },
		"JSON in percent":           func(s string) string { return each(s, format("%%5cu%04x")) },
		"percent in JSON":           func(s string) string { return each(s, format(`\u0025%02x`)) },
		"JavaScript":                func(s string) string { return each(s, format(`\x%02x`)) },
		"JavaScript with braces":    func(s string) string { return each(s, format(`\u{%x}`)) },
		"octal":                     func(s string) string { return each(s, format(`\%03o`)) },
		"Go":                        func(s string) string { return each(s, format(`\U%08x`)) },
		"HTML":                      func(s string) string { return each(s, format("&#%d;")) },
		"HTML in hexadecimal":       func(s string) string { return each(s, format("&#x%X;")) },
		"HTML with zeros":           func(s string) string { return each(s, format("&#0%d;")) },
		"HTML by name": func(s string) string {
			return strings.NewReplacer("/", "&sol;", "+", "&plus;", "=", "&equals;").Replace(s)
		},
		"quoted-printable":          func(s string) string { return each(s, format("=%02X")) },
		"a slash escaped":           func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
		"hexadecimal":               func(s string) string { return hex.EncodeToString([]byte(s)) },
		"hexadecimal in capitals":   func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"hexadecimal of the header": func(s string) string { return hex.EncodeToString([]byte("Bearer " + s)) },
		"hexadecimal in percent": func(s string) string {
			return each(hex.EncodeToString([]byte(s)),
				format("%%%02x"))
		},
		"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of the header": func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte("Bearer " +
				s))
		},
		"base64 for URLs": func(s string) string {
			return base64.URLEncoding.EncodeToString([]byte("x" +
				s))
		},
		"base64 in a query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
		"base64 in JSON": func(s string) string {
			return each(base64.StdEncoding.EncodeToString([]byte(s)),
				format(`\u%04x`))
		},
	}
	for i := range mixture {
		forms[fmt.Sprint("mixture ", i)] = func(s string) string {
			return each(s, func(k int, c byte) string { return fmt.Sprintf(mixture[(i+k*5)%len(mixture)], c) })
		}
	}
	const sent = secret + "0"
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded := form(sent)
			core := encoded[len(encoded)/4 : len(encoded)*3/4] // the edges of base64 may be those of what surrounds it
			shown := func(where, text string) {
				t.Helper()
				if strings.Contains(text, core) || strings.Contains(text, sent) || !strings.Contains(text, "********") {
					t.Errorf("%s shows %.300q", where, text)
				}
			}
			for _, chunk := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader,
				func(r io.Reader) io.Reader { return r }} {
				text := "before 100% \\ & = " + encoded + " after %"
				body, err := io.ReadAll(newMaskedBody(io.NopCloser(chunk(strings.NewReader(text))),
					newMask([]string{sent})))
				if err != nil || len(body) != len(text) || !strings.HasPrefix(string(body), "before 100% \\ & = ") ||
					!strings.HasSuffix(string(body), " after %") {
					t.Errorf("%v: %q", err, body)
				}
				shown("the body", string(body))
			}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/end" {
					return
				}
				w.Header().Set("X-Echo", encoded)
				w.Header().Set("Location", "/end?t="+encoded)
				w.WriteHeader(http.StatusFound)
			})
			b := newBroker(t, &Options{Credentials: &oneCredential{}}, credentialed(s.URL))
			a := mustGet(t, b, s.URL)
			if plain, err := url.QueryUnescape(a.URL); strings.Contains(a.URL, sent) ||
				err == nil && strings.Contains(plain, sent) {
				t.Errorf("the URL shows it: %s", a.URL)
			}
		})
	}
	t.Run("a URL that the host decodes, in an error", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://other.example.com/"+each(sent, format("%%%02x")))
			w.WriteHeader(http.StatusFound)
		})
		_, err := get(t, newBroker(t, &Options{Credentials: &oneCredential{}}, credentialed(s.URL)), s.URL)
		if err == nil || strings.Contains(err.Error(), "cret") {
			t.Error(err)
		}
	})
	t.Run("a header's name", func(t *testing.T) {
		t.Parallel()
		m, name := newMask([]string{"X-Secret-Name"}), http.Header{"X-Secret-Name": {"1"}, "X-Fine": {"1"}}
		resp, err := new(request).masked(&Response{Header: name, Body: http.NoBody}, m)
		if err != nil || len(resp.Header) != 1 || resp.Header.Get("X-Fine") != "1" {
			t.Error(resp.Header, err)
		}
	})
	t.Run("letters beyond ASCII", func(t *testing.T) {
		t.Parallel()
		m := newMask([]string{"pässwörd箱"})
		for _, text := range []string{`p\u00e4ssw\u00f6rd\u7bb1`, "p%C3%A4ssw%c3%b6rd%E7%AE%B1",
			"p&#228;ssw&#xf6;rd&#31665;", `p\xc3\xa4ssw\303\266rd箱`} {
			if got := m.text(text); strings.Trim(got, "*") != "" {
				t.Errorf("%s: %s", text, got)
			}
		}
	})
	t.Run("a body made to cost time", func(t *testing.T) {
		t.Parallel()
		for _, part := range []string{"%25", "%", `\`, "&", `\u005c`, "%2525", `\\\\`, "&#37;", "====",
			secret[:len(secret)-1]} {
			body := newMaskedBody(io.NopCloser(strings.NewReader(strings.Repeat(part, 1<<20/len(part)))),
				newMask([]string{sent}))
			begin := time.Now()
			if n, err := io.Copy(io.Discard, body); err != nil || n < 1<<19 {
				t.Error(n, err)
			}
			t.Logf("1 MiB of %q: %v", part, time.Since(begin).Round(time.Millisecond))
		}
	})
}

// TestHostileCache: what one tenant was answered is not another's, and a cookie is of the one answer that it came with.
func TestHostileCache(t *testing.T) {
	t.Parallel()
	get := func(t *testing.T, b *Broker, tenant string) *Response {
		t.Helper()
		call := &broker.Call{Plugin: "weather", Tool: "get_weather", Tenant: tenant}
		t.Cleanup(func() { _ = call.Close() })
		resp, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: "https://a.test/"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	t.Run("tenants", func(t *testing.T) {
		t.Parallel()
		s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
		for _, tenant := range []string{"acme", "", "other", "acme", "", "a\"\n\"cme", "acme\nX: y"} {
			get(t, b, tenant)
		}
		if len(s.asked) != 5 {
			t.Errorf("%d requests, want one for each of 5 tenants", len(s.asked))
		}
	})
	for name, headers := range map[string][]string{
		"a cookie":            {"Cache-Control: max-age=60", "Set-Cookie: session=1"},
		"a cookie of old":     {"Cache-Control: max-age=60", "Set-Cookie2: session=1"},
		"a cookie to confirm": {`Etag: "1"`, "Set-Cookie: session=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b := newOrigin(t, nil, headers...)
			if first := get(t, b, "acme"); first.source != SourceNetwork ||
				first.Header.Get("Set-Cookie")+first.Header.Get("Set-Cookie2") == "" {
				t.Errorf("the first answer: %s %v", first.source, first.Header)
			}
			for range 2 {
				again := get(t, b, "acme")
				if again.source != SourceCache ||
					len(again.Header.Values("Set-Cookie"))+len(again.Header.Values("Set-Cookie2")) > 0 {
					t.Errorf("from the cache: %s %v after %d requests", again.source, again.Header, len(s.asked))
				}
			}
		})
	}
}

package httpbroker

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// proxyAnswering is an HTTP proxy with a password that answers each request with a text, in which CREDENTIAL stands for
// what it was sent.
func proxyAnswering(t *testing.T, text string) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, strings.ReplaceAll(text, "CREDENTIAL",
						r.Header.Get("Proxy-Authorization")))
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("aki", "s3cret-word")}
}

// TestHostileUpstreamProxy: a proxy that answers itself, or refuses, gives guests nothing of what it knows.
func TestHostileUpstreamProxy(t *testing.T) {
	t.Parallel()
	whole := base64.StdEncoding.EncodeToString([]byte("aki:s3cret-word"))
	resolver := names{"far.test": {"1.1.1.1"}, "both.test": {"1.1.1.1", "10.0.0.1"}}
	through := func(t *testing.T, answer string) *Broker {
		return newBroker(t, &Options{Proxy: proxyAnswering(t, answer), Resolver: resolver,
			Rules: map[string]RuleOptions{"test": {Retries: -1}}},
			everything("https://far.test"), grant.HTTPRule{Name: "plain", URL: "http://far.test",
				Methods: []string{"GET"}}, grant.HTTPRule{Name: "both",
				URL: "https://both.test", Methods: []string{"GET"}})
	}
	for name, c := range map[string]struct{ answer, code, want string }{
		"a challenge": {"HTTP/1.1 407 CREDENTIAL\r\nProxy-Authenticate: Basic " +
			"realm=\"CREDENTIAL\"\r\n\r\n", abi.CodeNetwork, "outbound.proxy"},
		"a status that repeats secrets": {"HTTP/1.1 403 s3cret-word\r\n\r\n", abi.CodeNetwork, "403 Forbidden"},
		"a redirect": {"HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\n\r\n",
			abi.CodeNetwork, "302 Found"},
		"junk":          {"CREDENTIAL\r\n\r\n", abi.CodeNetwork, "not HTTP"},
		"a junk header": {"HTTP/1.1 200 OK\r\nCREDENTIAL\r\n\r\n", abi.CodeNetwork, "not HTTP"},
		"a huge header": {"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("CREDENTIAL", 10_000) +
			"\r\n\r\n", abi.CodeNetwork, ""},
		"an answer in the server's place": {"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
			abi.CodeNetwork,
			""},
		"silence": {"", abi.CodeNetwork, "closed the connection"},
	} {
		t.Run("tunnel: "+name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, through(t, c.answer), "https://far.test/")
			wantCode(t, err, c.code, c.want)
			for _, secret := range []string{"s3cret-word", whole} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q has %q", err, secret)
				}
			}
		})
	}
	for name, answer := range map[string]string{
		"the credential in the body": "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyou sent CREDENTIAL",
		"the password in the body": "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyou sent s3cret-word, or " +
			"s3cret%2Dword",
		"the password in hexadecimal": "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n7333637265742d776f7264",
		"the credential in a header":  "HTTP/1.1 200 OK\r\nX-Sent: CREDENTIAL\r\nConnection: close\r\n\r\n",
		"the password as a header":    "HTTP/1.1 200 OK\r\ns3cret-word: 1\r\nConnection: close\r\n\r\n",
		"a challenge": "HTTP/1.1 407 CREDENTIAL\r\nProxy-Authenticate: Basic " +
			"realm=\"s3cret-word\"\r\nConnection: close\r\n\r\nCREDENTIAL",
		"in pieces": "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n6\r\ns3cret\r\n5\r\n-word\r\n0\r\n\r\n",
		"a transfer encoding of its own": "HTTP/1.1 200 OK\r\nTransfer-Encoding: CREDENTIAL\r\n\r\n",
		"a length of its own":            "HTTP/1.1 200 OK\r\nContent-Length: CREDENTIAL\r\n\r\n",
		"a content encoding of its own": "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: " +
			"11\r\n\r\ns3cret-word",
		"junk":                            "CREDENTIAL",
		"a redirect to a private address": "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/CREDENTIAL\r\n\r\n",
	} {
		t.Run("plain: "+name, func(t *testing.T) {
			t.Parallel()
			a, err := get(t, through(t, answer), "http://far.test/")
			seen := a.body
			if err != nil {
				seen += err.Error()
			}
			if a.Response != nil {
				for name, values := range a.Header {
					seen += name + strings.Join(values, " ")
				}
			}
			for _, secret := range []string{"s3cret-word", "S3cret-Word", "s3cret%2Dword",
				"7333637265742d776f7264", whole} {
				if strings.Contains(seen, secret) {
					t.Errorf("the guest gets %q: %s", secret, seen)
				}
			}
		})
	}
	t.Run("a name with a private address beside a public one", func(t *testing.T) {
		t.Parallel()
		_, err := get(t, through(t, "HTTP/1.1 200 OK\r\n\r\n"), "https://both.test/")
		wantCode(t, err, abi.CodeNotGranted, "private")
	})
}

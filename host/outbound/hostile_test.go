package outbound

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lyingProxy starts an upstream proxy that serves each connection with say.
func lyingProxy(t *testing.T, scheme string, say func(net.Conn)) *url.URL {
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
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				say(conn)
			}()
		}
	}()
	return &url.URL{Scheme: scheme, Host: l.Addr().String(), User: url.UserPassword("aki", "s3cret-word")}
}

// readRequest reads the head of a request.
func readRequest(conn net.Conn) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return &http.Request{Header: http.Header{}}
	}
	return r
}

// answers makes an HTTP proxy answer each request with a text, in which CREDENTIAL is replaced by the received
// credential.
func answers(text string) func(net.Conn) {
	return func(conn net.Conn) {
		r := readRequest(conn)
		_, _ = io.WriteString(conn, strings.ReplaceAll(text, "CREDENTIAL", r.Header.Get("Proxy-Authorization")))
	}
}

// endless writes a text repeatedly and counts the bytes.
func endless(start, text string, written *atomic.Int64) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		text := []byte(start + strings.Repeat(text, 1+32<<10/len(text)))
		for {
			n, err := conn.Write(text)
			if written.Add(int64(n)); err != nil {
				return
			}
			text = text[len(start):]
			start = ""
		}
	}
}

// TestHostileProxy: invalid responses of an upstream proxy to a CONNECT request. Guests see the text of each error.
func TestHostileProxy(t *testing.T) {
	t.Parallel()
	dialer := func(t *testing.T, proxy *url.URL) *Dialer {
		host, err := ParseHost("*")
		if err != nil {
			t.Fatal(err)
		}
		return &Dialer{Host: host, Proxy: proxy, Resolver: names{
			"far.test": {"1.1.1.1"}, "inside.test": {"10.0.0.1"}, "both.test": {"1.1.1.1", "10.0.0.1"},
			"metadata.test": {"1.1.1.1", "169.254.169.254"},
			"six.test":      {"2606:4700::1111", "::1"},
		}}
	}
	for name, c := range map[string]struct{ answer, want string }{
		"another status": {"HTTP/1.1 500 Oops\r\n\r\n",
			"refused the connection: 500 Internal Server Error"},
		"a status that repeats secrets": {"HTTP/1.1 403 CREDENTIAL\r\n\r\n", "403 Forbidden"},
		"a status of control sequences": {"HTTP/1.1 502 \x1b]0;evil\x07\r\n\r\n", "502 Bad Gateway"},
		"a redirect": {"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/CREDENTIAL\r\n\r\n",
			"302 Found"},
		"a challenge": {"HTTP/1.1 407 CREDENTIAL\r\nProxy-Authenticate: Basic " +
			"realm=\"CREDENTIAL\"\r\n\r\n", "outbound.proxy"},
		"a challenge of the server's": {"HTTP/1.1 401 Log in\r\nWWW-Authenticate: Basic " +
			"realm=\"s3cret-word\"\r\n\r\n", "401 Unauthorized"},
		"a success that opens nothing": {"HTTP/1.1 204 No Content\r\n\r\n", "204 No Content"},
		"a success to come":            {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "100 Continue"},
		"another protocol": {"HTTP/1.1 101 Switching\r\nUpgrade: s3cret-word\r\n\r\n",
			"101 Switching Protocols"},
		"a status of no meaning": {"HTTP/1.1 999 CREDENTIAL\r\n\r\n", "999"},
		"junk":                   {"CREDENTIAL \x00\xff\r\n\r\n", "no HTTP response"},
		"junk as a version":      {"HTTP/9.9 200 CREDENTIAL\r\n\r\n", "no HTTP response"},
		"junk as a header":       {"HTTP/1.1 200 OK\r\nCREDENTIAL\r\n\r\n", "no HTTP response"},
		"half an answer":         {"HTTP/1.1 200 OK\r\nX-A: CREDENTIAL", "no HTTP response"},
		"nothing":                {"", "no HTTP response"},
		"what speaks SSH":        {"SSH-2.0-CREDENTIAL\r\n", "no HTTP response"},
		"what speaks SOCKS":      {"\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50", "no HTTP response"},
		"a frame of HTTP/2": {"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
			"no HTTP response"},
		"a negative status": {"HTTP/1.1 -200 OK\r\n\r\n", "no HTTP response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dialer(t, lyingProxy(t, "http", answers(c.answer)))
			conn, err := d.Dial(t.Context(), "tcp", "far.test:443")
			if err == nil {
				_ = conn.Close()
				t.Fatal("it is taken for a tunnel")
			}
			text := Reason(err)
			if !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
			for _, secret := range append(ProxySecrets(d.Proxy), "aki", "\x1b", "169.254") {
				if strings.Contains(text, secret) {
					t.Errorf("%q has %q", text, secret)
				}
			}
		})
	}
	for name, c := range map[string][2]string{
		"a header without end":         {"HTTP/1.1 200 OK\r\nX-A: ", "a"},
		"headers without end":          {"HTTP/1.1 200 OK\r\n", "X-A: b\r\n"},
		"a status line without end":    {"HTTP/1.1 200 ", "a"},
		"a folded header without end":  {"HTTP/1.1 200 OK\r\nX-A: b\r\n", " c\r\n"},
		"a first line that never ends": {"", "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written atomic.Int64
			d := dialer(t, lyingProxy(t, "http", endless(c[0], c[1], &written)))
			if _, err := d.Dial(t.Context(), "tcp", "far.test:443"); err == nil ||
				!strings.Contains(err.Error(), "upstream proxy") {
				t.Errorf("got %v", err)
			}
			if n := written.Load(); n > 16<<20 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
	for name, answer := range map[string]string{
		"another version":            "\x04\x00",
		"a method of its own":        "\x05\x80",
		"no method":                  "\x05\xff",
		"a password that is wrong":   "\x05\x02\x01\x01",
		"a password, another way":    "\x05\x02\x7f\x00",
		"refused":                    "\x05\x02\x01\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00",
		"a code of its own":          "\x05\x02\x01\x00\x05\xee\x00\x01\x00\x00\x00\x00\x00\x00",
		"an address of no kind":      "\x05\x02\x01\x00\x05\x00\x00\x09\x00\x00\x00\x00\x00\x00",
		"a reserved byte":            "\x05\x02\x01\x00\x05\x00\x07\x01\x00\x00\x00\x00\x00\x00",
		"a reply of another version": "\x05\x02\x01\x00\x04\x5a\x00\x01\x00\x00\x00\x00\x00\x00",
		"half an address":            "\x05\x02\x01\x00\x05\x00\x00\x04\x00\x00",
		"half a name":                "\x05\x02\x01\x00\x05\x00\x00\x03\xffshort",
		"one byte":                   "\x05",
		"an answer in HTTP":          "HTTP/1.1 200 s3cret-word\r\n\r\n",
	} {
		t.Run("SOCKS: "+name, func(t *testing.T) {
			t.Parallel()
			d := dialer(t, lyingProxy(t, "socks5", func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 64))
				_, _ = io.WriteString(conn, answer)
				if c, ok := conn.(*net.TCPConn); ok {
					_ = c.CloseWrite()
				}
				_, _ = io.Copy(io.Discard, conn)
			}))
			conn, err := d.Dial(t.Context(), "tcp", "far.test:443")
			if err == nil {
				_ = conn.Close()
				t.Fatal("it is taken for a tunnel")
			}
			if text := Reason(err); strings.Contains(text, "s3cret-word") {
				t.Errorf("%q has the password", text)
			}
		})
	}
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run("silence of "+scheme, func(t *testing.T) {
			t.Parallel()
			d := dialer(t, lyingProxy(t, scheme, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			if _, err := d.Dial(ctx, "tcp", "far.test:443"); err == nil {
				t.Error("it is taken for a tunnel")
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("given up after %v", took)
			}
		})
	}
	t.Run("no TLS where the proxy is to have it", func(t *testing.T) {
		t.Parallel()
		d := dialer(t, lyingProxy(t, "https", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			sent, _ := io.ReadAll(conn)
			if strings.Contains(string(sent), "Proxy-Authorization") {
				t.Error("the password goes out without encryption")
			}
		}))
		if _, err := d.Dial(t.Context(), "tcp", "far.test:443"); err == nil {
			t.Error("it is taken for a tunnel")
		}
	})
	for name, address := range map[string]string{
		"a private name": "inside.test:80", "a name with a private address beside a public one": "both.test:80",
		"a name with a metadata address beside a public one": "metadata.test:80",
		"a name with a loopback address beside a public one": "six.test:80",
		"a private address": "10.0.0.1:80", "a loopback address": "127.0.0.1:80", "its IPv6 form": "[::1]:80",
		"a mapped one":       "[::ffff:10.0.0.1]:80",
		"a metadata address": "169.254.169.254:80", "one through NAT64": "[64:ff9b::a9fe:a9fe]:80",
		"unspecified": "0.0.0.0:80", "localhost": "localhost:80",
	} {
		t.Run("to "+name, func(t *testing.T) {
			t.Parallel()
			d := dialer(t, lyingProxy(t, "http", func(net.Conn) { t.Error("the proxy was asked") }))
			_, err := d.Dial(t.Context(), "tcp", address)
			if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
	for _, address := range []string{"far.test:443\r\nX-Evil: 1", "far.test:443 HTTP/1.1\r\n\r\n", "far.test:44\x003"} {
		t.Run(fmt.Sprintf("the target %q", address), func(t *testing.T) {
			t.Parallel()
			d := dialer(t, lyingProxy(t, "http", func(conn net.Conn) {
				if r := readRequest(conn); r.Header.Get("X-Evil") != "" {
					t.Error("a header is smuggled in")
				}
			}))
			if _, err := d.Dial(t.Context(), "tcp", address); err == nil {
				t.Error("there is a tunnel")
			}
		})
	}
	t.Run("what comes with the answer is kept", func(t *testing.T) {
		t.Parallel()
		text := strings.Repeat("banner ", 20_000) // longer than a header may be
		conn, err := dialer(t, lyingProxy(t, "http",
			answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"+text))).Dial(t.Context(), "tcp", "far.test:22")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got, err := io.ReadAll(conn); err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
	})
}

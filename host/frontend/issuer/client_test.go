package issuer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestHostileEnvironment: requests for keys do not use a proxy in the environment, which could answer them.
func TestHostileEnvironment(t *testing.T) {
	asked := func(name string, called *bool) *url.URL {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			*called = true
			w.WriteHeader(http.StatusTeapot)
		}))
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(name, err)
		}
		return u
	}
	var evil, own bool
	environment, configured := asked("environment", &evil), asked("configured", &own)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, environment.String())
	}
	t.Setenv("NO_PROXY", "")
	for name, c := range map[string]struct {
		proxy *url.URL
		to    string
		own   bool
	}{
		"http":                          {nil, "http://issuer.invalid/keys", false},
		"https":                         {nil, "https://issuer.invalid/keys", false},
		"http, with a proxy":            {configured, "http://issuer.invalid/keys", true},
		"https, with a proxy":           {configured, "https://issuer.invalid/keys", true},
		"this machine, with a proxy":    {configured, "http://127.0.0.1:1/keys", false},
		"this machine, over IPv6":       {configured, "http://[::1]:1/keys", false},
		"this machine, mapped":          {configured, "http://[::ffff:127.0.0.1]:1/keys", false},
		"this machine, by its own name": {configured, "http://localhost:1/keys", false},
	} {
		t.Run(name, func(t *testing.T) {
			evil, own = false, false
			client := NewClient(c.proxy)
			client.Timeout = 5 * time.Second
			response, err := client.Get(c.to)
			if err == nil {
				response.Body.Close()
			}
			if evil || own != c.own {
				t.Errorf("the environment's proxy was asked: %v, that of the configuration: %v, %v", evil, own, err)
			}
		})
	}
}

// TestHostileIssuerTLS: requests to an issuer with an invalid certificate fail.
func TestHostileIssuerTLS(t *testing.T) {
	t.Parallel()
	hangsUp := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("it is asked")
	}))
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("it is asked")
	}))
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	roots := x509.NewCertPool()
	roots.AddCert(old.Certificate())
	trusting := NewClient(nil)
	trusting.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	for name, c := range map[string]struct {
		client *http.Client
		url    string
		want   string
	}{
		"self-signed":      {NewClient(nil), server.URL, "unknown authority"},
		"TLS 1.1":          {trusting, old.URL, "protocol version"},
		"another name":     {trusting, strings.Replace(old.URL, "127.0.0.1", "localhost", 1), ""},
		"no TLS":           {NewClient(nil), "https://" + say(t, hangsUp("HTTP/1.1 200 OK\r\n\r\n{}")), ""},
		"half a handshake": {NewClient(nil), "https://" + say(t, hangsUp("\x16\x03\x03\x00\x7a\x02")), ""},
		"an alert":         {NewClient(nil), "https://" + say(t, hangsUp("\x15\x03\x03\x00\x02\x02\x28")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// say listens, serves each connection with f, and returns the address.
func say(t *testing.T, f func(net.Conn)) string {
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
				_, _ = conn.Read(make([]byte, 4096))
				f(conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

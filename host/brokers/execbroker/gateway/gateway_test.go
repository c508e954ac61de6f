package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// names is a resolver with fixed addresses.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if n[host] == "" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(n[host])}, nil
}

// serving is a gateway that serves one command on listeners of the host.
type serving struct {
	t     testing.TB
	proxy string
	stop  func()

	mu    sync.Mutex
	notes []string
	seen  []Observation
}

func serve(t testing.TB, o Options, connect ...string) *serving {
	t.Helper()
	s := &serving{t: t}
	o.Plugin = "shell"
	o.Observe = func(one Observation) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, one)
	}
	g, err := New(connect, o)
	if err != nil {
		t.Fatal(err)
	}
	var listeners []net.Listener
	for range g.Listen() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	s.proxy = listeners[0].Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		g.Serve(ctx, listeners, Client{Tool: "test", Notify: func(text string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notes = append(s.notes, text)
		}})
	})
	s.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(s.stop)
	return s
}

// send sends text to the proxy and returns the response.
func (s *serving) send(text string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.proxy)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// target is a server that records its requests.
type target struct {
	port string
	mu   sync.Mutex
	got  []string
}

// newTarget starts a server that echoes each request in an HTTP response.
func newTarget(t testing.TB) *target {
	t.Helper()
	x := &target{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		x.got = append(x.got, fmt.Sprintf("%s %s %s %s", r.Method, r.Host, r.URL, body))
		x.mu.Unlock()
		fmt.Fprintf(w, "target: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(server.Close)
	_, x.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return x
}

func (x *target) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.got)
}

// TestHostileProxyRequests sends requests that the proxy and another program might interpret as requests to different
// hosts.
func TestHostileProxyRequests(t *testing.T) {
	t.Parallel()
	granted, secret := newTarget(t), newTarget(t)
	s := serve(t, Options{Resolver: names{"ok.test": "127.0.0.1", "x.wild.test": "127.0.0.1"}},
		"ok.test:"+granted.port+":private", "*.wild.test:"+granted.port+":private")
	ok, evil := "ok.test:"+granted.port, "127.0.0.1:"+secret.port
	tunnel := func(authority string) string { return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + ok + "\r\n\r\n" }
	plain := func(lines ...string) string { return strings.Join(lines, "\r\n") }
	socks := func(kind byte, address []byte, port ...byte) string {
		return "\x05\x01\x00\x05\x01\x00" + string([]byte{kind}) + string(address) + string(port)
	}
	var high, low byte
	var number int
	fmt.Sscan(secret.port, &number)
	high, low = byte(number>>8), byte(number)

	for name, text := range map[string]string{
		"a host that is not granted":       tunnel(evil),
		"a user in front":                  tunnel(ok + "@" + evil),
		"a user that looks like the host":  tunnel("ok.test@" + evil),
		"a fragment":                       tunnel(evil + "#." + ok),
		"a query":                          tunnel(evil + "?" + ok),
		"a path":                           tunnel(evil + "/" + ok),
		"a backslash":                      tunnel(evil + `\@` + ok),
		"an escape":                        tunnel("127.0.0.1%3a" + secret.port),
		"an escaped dot":                   tunnel("127%2e0.0.1:" + secret.port),
		"two ports":                        tunnel("ok.test:" + granted.port + ":" + secret.port),
		"no port":                          tunnel("ok.test"),
		"an empty port":                    tunnel("ok.test:"),
		"port 0":                           tunnel("ok.test:0"),
		"a port that overflows":            tunnel("ok.test:6" + granted.port),
		"a port with a sign":               tunnel("ok.test:+" + granted.port),
		"a port in hexadecimal":            tunnel("ok.test:0x50"),
		"a port by name":                   tunnel("ok.test:http"),
		"another port":                     tunnel("ok.test:" + secret.port),
		"no host":                          tunnel(":" + granted.port),
		"a scheme":                         tunnel("http://" + ok),
		"a short address":                  tunnel("127.1:" + secret.port),
		"a number":                         tunnel("2130706433:" + secret.port),
		"an address in hexadecimal":        tunnel("0x7f.0.0.1:" + secret.port),
		"an octal address":                 tunnel("0177.0.0.1:" + secret.port),
		"any address":                      tunnel("0.0.0.0:" + secret.port),
		"a mapped address":                 tunnel("[::ffff:127.0.0.1]:" + secret.port),
		"a mapped address in hexadecimal":  tunnel("[::ffff:7f00:1]:" + secret.port),
		"a translated address":             tunnel("[64:ff9b::127.0.0.1]:" + secret.port),
		"an address with a zone":           tunnel("[::1%25lo]:" + secret.port),
		"the domain of a wildcard":         tunnel("wild.test:" + granted.port),
		"a name that ends like the domain": tunnel("evilwild.test:" + granted.port),
		"the domain in front":              tunnel("x.wild.test.evil.test:" + granted.port),
		"an empty label":                   tunnel("..wild.test:" + granted.port),
		"a line break in the host":         tunnel("ok.test\n127.0.0.1:" + secret.port),
		"a zero in the host":               tunnel("ok.test\x00.evil.test:" + granted.port),
		"a full-width dot":                 tunnel("127。0。0。1:" + secret.port),
		"circled digits":                   tunnel("①②⑦.0.0.1:" + secret.port),
		"a Kelvin sign":                    tunnel("oK.test:" + granted.port + "1"),
		"a star":                           tunnel("*:" + granted.port),
		"a long name":                      tunnel(strings.Repeat("a", 300) + ":" + granted.port),
		"the Host header decides":          "GET http://" + evil + "/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"two Host headers": "GET http://" + evil + "/ HTTP/1.1\r\nHost: " + ok +
			"\r\nHost: " + evil + "\r\n\r\n",
		"no absolute URL":        "GET / HTTP/1.1\r\nHost: " + evil + "\r\n\r\n",
		"a URL without a scheme": "GET //" + evil + "/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"a user in the URL": "GET http://ok.test:80@" + evil +
			"/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"a backslash in the URL": "GET http://" + evil + `\@` + ok +
			"/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"another scheme":                    "GET https://" + ok + "/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"a file":                            "GET file:///etc/passwd HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"FTP":                               "GET ftp://" + evil + "/ HTTP/1.1\r\nHost: " + ok + "\r\n\r\n",
		"the server itself":                 "OPTIONS * HTTP/1.1\r\nHost: " + evil + "\r\n\r\n",
		"HTTP/2":                            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":                               "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
		"SOCKS 4":                           "\x04\x01" + string([]byte{high, low}) + "\x7f\x00\x00\x01\x00",
		"SOCKS, an address":                 socks(1, []byte{127, 0, 0, 1}, high, low),
		"SOCKS, an address as a name":       socks(3, []byte("\x09127.0.0.1"), high, low),
		"SOCKS, a mapped address":           socks(4, netip.MustParseAddr("::ffff:127.0.0.1").AsSlice(), high, low),
		"SOCKS, a translated address":       socks(4, netip.MustParseAddr("64:ff9b::7f00:1").AsSlice(), high, low),
		"SOCKS, an empty name":              socks(3, []byte{0}, high, low),
		"SOCKS, a name with a port":         socks(3, append([]byte{byte(len(ok))}, ok...), high, low),
		"SOCKS, a name with a zero":         socks(3, []byte("\x11127.0.0.1\x00.ok.test"), high, low),
		"SOCKS, a name with a line break":   socks(3, []byte("\x0fok.test\n127.0.0"), high, low),
		"SOCKS, an unknown kind of address": socks(2, []byte{127, 0, 0, 1}, high, low),
		"SOCKS, listening": "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01" +
			string([]byte{high, low}),
		"SOCKS, datagrams": "\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01" +
			string([]byte{high, low}),
		"SOCKS, a password": "\x05\x01\x02\x01\x01a\x01b\x05\x01\x00\x01\x7f\x00\x00\x01" +
			string([]byte{high, low}),
		"SOCKS, no methods": "\x05\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + string([]byte{high, low}),
		"SOCKS, another version in the midst": "\x05\x01\x00\x04\x01\x00\x01\x7f\x00\x00\x01" +
			string([]byte{high, low}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := s.send(text)
			if strings.Contains(answer, "200") || strings.Contains(answer, "target:") ||
				strings.HasPrefix(answer, "\x05\x00\x05\x00") {
				t.Errorf("%q is answered with %q", text, answer)
			}
		})
	}
	// A second request on a connection is checked too, unless the server also reads it as a part of the first one.
	for name, text := range map[string]string{
		"both lengths": plain("POST http://"+ok+"/ HTTP/1.1", "Host: x", "Content-Length: 6",
			"Transfer-Encoding: chunked", "", "0", "",
			"GET http://"+evil+"/smuggled HTTP/1.1", "Host: "+evil, "", ""),
		"two lengths": plain("POST http://"+ok+"/ HTTP/1.1", "Host: x", "Content-Length: 0",
			"Content-Length: 60", "", "GET http://"+evil+"/smuggled HTTP/1.1", "Host: x", "", ""),
		"a pipeline": plain("GET http://"+ok+"/first HTTP/1.1", "Host: x", "",
			"GET http://"+evil+"/smuggled HTTP/1.1", "Host: x", "", ""),
		"an obscure encoding": plain("POST http://"+ok+"/ HTTP/1.1", "Host: x", "Transfer-Encoding: xchunked", "", "0",
			"", "GET http://"+evil+"/smuggled HTTP/1.1", "Host: x", "", ""),
		"a space before the colon": plain("POST http://"+ok+"/ HTTP/1.1", "Host: x", "Transfer-Encoding : chunked",
			"Content-Length: 5", "", "0", "",
			"GET http://"+evil+"/smuggled HTTP/1.1", "Host: x", "", ""),
		"an upgrade": plain("GET http://"+ok+"/first HTTP/1.1", "Host: x", "Connection: upgrade",
			"Upgrade: websocket", "", "GET http://"+evil+"/smuggled HTTP/1.1", "Host: x", "", ""),
		"a bare line feed": "GET http://" + ok + "/ HTTP/1.1\nHost: x\nX: y\n\nGET http://" + evil +
			"/smuggled HTTP/1.1\nHost: x\n\n",
	} {
		t.Run("smuggled by "+name, func(t *testing.T) {
			t.Parallel()
			if answer := s.send(text); strings.Contains(answer, "target: GET /smuggled") {
				t.Errorf("%q is answered with %q", text, answer)
			}
		})
	}
	t.Cleanup(func() {
		if got := secret.requests(); len(got) > 0 {
			t.Errorf("the other server got %q", got)
		}
		for _, got := range granted.requests() {
			if strings.Contains(got, evil) || strings.HasPrefix(got, "GET "+ok+" /smuggled") {
				t.Errorf("the granted server got %q", got)
			}
		}
	})
}

func TestForward(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	s := serve(t, Options{Resolver: names{"ok.test": "127.0.0.1"}}, "ok.test:"+x.port+":private")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: s.proxy})}}
	defer client.CloseIdleConnections()
	for i, body := range []string{"", "a body"} {
		request, err := http.NewRequestWithContext(t.Context(), []string{"GET", "POST"}[i],
			"http://OK.test:"+x.port+"/path?q=1", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || !strings.HasSuffix(string(text), "/path?q=1") {
			t.Errorf("%d %s", response.StatusCode, text)
		}
	}
	if got := x.requests(); len(got) != 2 || !strings.HasPrefix(got[1], "POST OK.test:"+x.port+" /path?q=1 a body") {
		t.Errorf("the server got %q", got)
	}
	response, err := client.Get("http://other.test/")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden || !strings.HasPrefix(string(text),
		"hako: the connection to other.test:80 is not granted") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	s.stop()
	if len(s.seen) != 3 || s.seen[0].Outcome != OutcomeOK || s.seen[0].Sent == 0 || s.seen[0].Received == 0 ||
		s.seen[2].Outcome != OutcomeRefused || len(s.notes) != 1 {
		t.Errorf("observed %+v, told %q", s.seen, s.notes)
	}
}

// TestAnswerBeforeBody answers a request while the client still sends it.
func TestAnswerBeforeBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		_ = controller.EnableFullDuplex()
		_, _ = io.WriteString(w, "begun ")
		_ = controller.Flush()
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "ended with %s %v", body, err)
	}))
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := serve(t, Options{Resolver: names{"ok.test": "127.0.0.1"}}, "ok.test:"+port+":private")
	conn, err := net.Dial("tcp", s.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "POST http://ok.test:%s/ HTTP/1.1\r\nHost: ok.test:%s\r\nContent-Length: 8\r\n\r\nhalf", port, port)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, len("begun "))
	if _, err := io.ReadFull(response.Body, begun); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "half")
	if rest, err := io.ReadAll(response.Body); string(rest) != "ended with halfhalf <nil>" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

// TestUpstreamProxy: connections go through a configured upstream proxy, and names that resolve to private addresses
// are refused.
func TestUpstreamProxy(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
		if strings.HasPrefix(r.RequestURI, "closed.test") {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\nhello ")
		_, _ = io.Copy(conn, buffered)
	}))
	t.Cleanup(upstream.Close)
	proxy, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.User = url.UserPassword("aki", "s3cret")
	s := serve(t, Options{Proxy: proxy, Resolver: names{"inside.test": "10.0.0.1"}}, "far.test:22",
		"inside.test:22", "closed.test:22")
	if got := s.send("CONNECT far.test:22 HTTP/1.1\r\nHost: x\r\n\r\nx"); !strings.HasSuffix(got, "\r\n\r\nhello x") {
		t.Errorf("got %q", got)
	}
	if want := "CONNECT far.test:22 Basic " +
		base64.StdEncoding.EncodeToString([]byte("aki:s3cret")); asked.Load() != want {
		t.Errorf("the proxy was asked %q, want %q", asked.Load(), want)
	}
	if got := s.send("CONNECT inside.test:22 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "403") ||
		!strings.Contains(got, "inside.test is at a private address") {
		t.Errorf("got %q", got)
	}
	if got := s.send("CONNECT closed.test:22 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "502") ||
		strings.Contains(got, "s3cret") ||
		!strings.Contains(got, "the upstream proxy refused the connection: 403 Forbidden") {
		t.Errorf("got %q", got)
	}
}

// TestPorts: each host that is granted by name gets its own address, and each that is granted by address keeps it.
func TestPorts(t *testing.T) {
	t.Parallel()
	g, err := New([]string{"b.test:443", "a.test:22", "b.test:22:private", "*.c.test:443", "*:80", "10.0.0.5:5432",
		"[2606:4700::1]:443", "localhost:8080", "127.0.0.1:8080",
		"[fe80::1]:443", "b.test:443"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "[127.64.0.1:3128 127.64.1.1:443 127.64.1.2:22 127.64.1.1:22 10.0.0.5:5432 [2606:4700::1]:443 " +
		"127.0.0.1:8080]"
	if got := fmt.Sprint(g.Listen()); got != want {
		t.Errorf("listens at %s, want %s", got, want)
	}
	if got, want := g.Hosts(), "127.0.0.1 localhost\n127.64.1.1 b.test\n127.64.1.2 a.test\n"; got != want {
		t.Errorf("hosts %q, want %q", got, want)
	}
	if got := g.Environ(); !slices.Contains(got, "https_proxy=http://127.64.0.1:3128") ||
		!slices.Contains(got, "NO_PROXY=localhost,127.0.0.1,::1") {
		t.Errorf("environment %q", got)
	}
	if r, _ := g.findRule("b.test", "22"); r == nil || !r.Private {
		t.Errorf("b.test:22 is %v", r)
	}
	if r, _ := g.findRule("anything.test", "80"); r == nil || r.String() != "*:80" {
		t.Errorf("anything.test:80 is %v", r)
	}
	if _, err := New([]string{"443"}, Options{}); err == nil {
		t.Error("a port alone is granted")
	}
}

// FuzzReadSOCKSRequest reads the first messages of SOCKS clients.
func FuzzReadSOCKSRequest(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x07ok.test\x01\xbb"))
	f.Add([]byte("\x05\x02\x00\x02\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50"))
	f.Fuzz(func(t *testing.T, data []byte) {
		host, number, code, err := readSOCKSRequest(struct {
			io.Reader
			io.Writer
		}{bufio.NewReader(bytes.NewReader(data)), io.Discard})
		if err == nil && code == socksOK && (host == "" || number == "" || len(host) > 255) {
			t.Errorf("%q leads to %q, %q", data, host, number)
		}
	})
}

package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serve starts a server of this package with at most limit connections, and returns the configuration for clients that
// trust it.
func serve(t *testing.T, limit int, handler http.Handler, encrypted bool) (address string, trust *tls.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = New("", handler, nil)
	server.Config.ConnState = newConnections(limit).changed
	if encrypted {
		server.EnableHTTP2 = true
		server.StartTLS()
		trust = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Start()
	}
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.Listener.Addr().String(), trust
}

// ask sends one request over a new connection.
func ask(t *testing.T, address string, trust *tls.Config) error {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: trust, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if trust != nil {
		scheme = "https"
	}
	response, err := (&http.Client{Transport: transport}).Post(scheme+"://"+address, "text/plain",
		strings.NewReader("hello"))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && string(text) != "hello" {
		err = fmt.Errorf("%s %q", response.Status, text)
	}
	return err
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })

// TestHostileConnections opens four times as many connections as the server keeps. None of them has a request, and the
// next client is answered at once.
func TestHostileConnections(t *testing.T) {
	t.Parallel()
	const limit = 8
	for name, attack := range map[string]struct {
		encrypted bool
		use       func(net.Conn) error
	}{
		"silent":              {false, func(net.Conn) error { return nil }},
		"half a request line": {false, func(c net.Conn) error { return write(c, "POS") }},
		"headers without end": {false,
			func(c net.Conn) error { return write(c, "POST / HTTP/1.1\r\nHost: a\r\nX-A: ") }},
		"kept alive after a request":  {false, func(c net.Conn) error { return exchange(c) }},
		"silent before the handshake": {true, func(net.Conn) error { return nil }},
		"half a handshake": {true,
			func(c net.Conn) error { return write(c, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") }},
		"HTTP/2 without a request": {true, func(c net.Conn) error { _, err := preface(c); return err }},
		"plain text where TLS is expected": {true,
			func(c net.Conn) error { return write(c, "GET / HTTP/1.1\r\n\r\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, trust := serve(t, limit, echo, attack.encrypted)
			closed := make(chan struct{}, 4*limit)
			for range 4 * limit {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = attack.use(conn) // the server may have closed it
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					closed <- struct{}{}
				}()
			}
			if err := ask(t, address, trust); err != nil {
				t.Errorf("the next client: %v", err)
			}
			for range 3 * limit {
				<-closed
			}
		})
	}
}

// TestHostileRequestsKeepTheirConnections: what is closed for a new connection is never one with a request.
func TestHostileRequestsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const limit = 4
	release, started := make(chan struct{}), make(chan struct{}, limit)
	address, _ := serve(t, limit, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-release
		echo(w, r)
	}), false)
	answers := make(chan error, limit)
	for range limit {
		go func() { answers <- ask(t, address, nil) }()
		<-started
	}
	for range 3 * limit {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
			t.Errorf("a connection too many: %v", err)
		}
		conn.Close()
	}
	close(release)
	for range limit {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestHostileBodies sends bodies that do not end. The handler's read ends, or if it does not read, its connection.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(read chan error) http.HandlerFunc{
		"the handler reads": func(read chan error) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				read <- err
			}
		},
		"the handler does not read": func(read chan error) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { read <- os.ErrDeadlineExceeded }
		},
	} {
		for encoding, headers := range map[string]string{"length": "Content-Length: 100000\r\n\r\nx",
			"chunks": "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"} {
			t.Run(name+"/"+encoding, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					read := make(chan error, 1)
					conn := connect(t, handler(read))
					if err := write(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+headers); err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the body ended with %v", err)
					}
					if _, err := io.Copy(io.Discard, conn); err != nil {
						t.Errorf("the connection: %v", err)
					}
					if took := time.Since(start); took < readTimeout || took > readTimeout+time.Second {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// oneConn is a listener with one connection. It accepts nothing else until it is closed.
type oneConn struct {
	conns chan net.Conn
	net.Listener
}

func (l oneConn) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l oneConn) Close() error   { close(l.conns); return nil }
func (l oneConn) Addr() net.Addr { return new(net.TCPAddr) }

// connect starts a server of this package in a bubble of synctest, and returns a connection to it.
func connect(t *testing.T, handler http.Handler) net.Conn {
	t.Helper()
	client, conn := net.Pipe()
	listener := oneConn{conns: make(chan net.Conn, 1)}
	listener.conns <- conn
	server := New("", handler, nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client
}

// TestStreamOutlivesReadTimeout: the timeout for reading a request does not end the response.
func TestStreamOutlivesReadTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
			text, _ := io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				text = []byte("canceled")
			case <-time.After(2 * readTimeout):
			}
			_, _ = w.Write(text)
		}))
		if err := write(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(response.Body); err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// TestHostileHTTP2 floods one connection with frames while another client asks.
func TestHostileHTTP2(t *testing.T) {
	t.Parallel()
	const frames = 20_000
	for name, flood := range map[string]func(f *framer) error{
		"rapid reset": func(f *framer) error {
			for i := range uint32(frames) {
				if err := errors.Join(f.request(2*i+1, false),
					f.WriteRSTStream(2*i+1, http2.ErrCodeCancel)); err != nil {
					return err
				}
			}
			return nil
		},
		"streams without bodies": func(f *framer) error {
			for i := range uint32(frames) {
				if err := f.request(2*i+1, false); err != nil {
					return err
				}
			}
			return nil
		},
		"settings": func(f *framer) error { return f.repeat(frames, func() error { return f.WriteSettings() }) },
		"pings": func(f *framer) error {
			return f.repeat(frames,
				func() error { return f.WritePing(false, [8]byte{}) })
		},
		"priorities": func(f *framer) error {
			return f.repeat(frames, func() error { return f.WritePriority(1, http2.PriorityParam{StreamDep: 3}) })
		},
		"empty data": func(f *framer) error {
			return errors.Join(f.request(1, false),
				f.repeat(frames, func() error { return f.WriteData(1, false, nil) }))
		},
		"continuations without end": func(f *framer) error {
			block := f.encode("x-a", strings.Repeat("a", 8<<10))
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
			return errors.Join(err, f.repeat(frames/20, func() error { return f.WriteContinuation(1, false, block) }))
		},
		"a header that unfolds": func(f *framer) error {
			block := f.encode("x-a", strings.Repeat("a", 4000))
			block = append(block, bytes.Repeat([]byte{0x80 | 62}, 16_000)...) // 62 is the entry that was added last
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true})
		},
		"a window of zero": func(f *framer) error {
			err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for i := range uint32(100) {
				err = errors.Join(err, f.request(2*i+1, true))
			}
			return err
		},
		"unknown frames": func(f *framer) error {
			return f.repeat(frames, func() error { return f.WriteRawFrame(0xbe, 0, 0, make([]byte, 16)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, trust := serve(t, 8, echo, true)
			trust = trust.Clone()
			trust.NextProtos = []string{"h2"}
			conn, err := tls.Dial("tcp", address, trust)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			f, err := preface(conn)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // discards what the server answers, so that it can go on
				defer cancel()
				_, _ = io.Copy(io.Discard, conn)
			}()
			flooded := flood(f) // an error is the server's way to end it
			if err := ask(t, address, trust); err != nil {
				t.Errorf("another client: %v", err)
			}
			if flooded == nil && ctx.Err() == nil {
				t.Log("the connection stays open")
			}
		})
	}
}

// framer writes HTTP/2 frames by hand.
type framer struct {
	*http2.Framer
	buffer  bytes.Buffer
	encoder *hpack.Encoder
}

func preface(conn net.Conn) (*framer, error) {
	if err := write(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	f := &framer{Framer: http2.NewFramer(conn, conn)}
	f.encoder = hpack.NewEncoder(&f.buffer)
	return f, f.WriteSettings()
}

func (f *framer) encode(fields ...string) []byte {
	f.buffer.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(f.buffer.Bytes())
}

func (f *framer) request(stream uint32, end bool) error {
	block := f.encode(":method", "POST", ":scheme", "https", ":path", "/", ":authority", "a")
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block,
		EndHeaders: true, EndStream: end})
}

func (f *framer) repeat(n int, write func() error) error {
	for range n {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func write(conn net.Conn, text string) error {
	_, err := io.WriteString(conn, text)
	return err
}

// exchange sends one request and reads its answer.
func exchange(conn net.Conn) error {
	if err := write(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func isReset(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && !failed.Timeout()
}

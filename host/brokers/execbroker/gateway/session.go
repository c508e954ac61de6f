package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/retry"
)

const (
	// maxConnections limits the connections that one command has at once.
	maxConnections = 64
	// maxNotes limits the different reasons for refused connections that are reported to one command.
	maxNotes = 16
	// greetingTime is the timeout for a proxy client to send its target.
	greetingTime = 30 * time.Second
)

// Client is the command that a gateway serves.
type Client struct {
	// Tool is the tool that runs the command.
	Tool string
	// Notify is called with a sentence for each different reason for which connections failed. Nil drops them.
	Notify func(text string)
}

// session serves one command.
type session struct {
	*Gateway
	ctx    context.Context // ends with the command
	client Client
	slots  chan struct{} // one element per open connection
	proxy  *proxy

	mu    sync.Mutex // guards notes
	notes map[string]bool
}

// Serve accepts connections on listeners, one for each address in Listen, until ctx ends. Then it closes all
// connections and waits for their goroutines.
func (g *Gateway) Serve(ctx context.Context, listeners []net.Listener, client Client) {
	s := &session{Gateway: g, ctx: ctx, client: client, slots: make(chan struct{}, maxConnections),
		notes: map[string]bool{}}
	s.proxy = newProxy(s)
	var accepting, connections sync.WaitGroup
	for i, l := range listeners {
		accepting.Go(func() { s.accept(l, &g.endpoints[i], &connections) })
	}
	<-ctx.Done()
	for _, l := range listeners {
		_ = l.Close()
	}
	accepting.Wait()
	connections.Wait()
	s.proxy.close()
}

// accept accepts connections until the listener is closed.
func (s *session) accept(l net.Listener, at *endpoint, connections *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example too many open files
			s.log.WarnContext(s.ctx, "cannot accept a command's connection", "plugin", s.plugin, "err", err)
			if retry.Wait(s.ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
			connections.Go(func() {
				defer func() { <-s.slots }()
				s.serve(conn, at)
			})
		default:
			text := fmt.Sprintf("a connection is refused: a command may have at most %d at once", maxConnections)
			s.notify(&failure{OutcomeBusy, text})
			s.watch().end(OutcomeBusy, 0, 0)
			reset(conn)
		}
	}
}

// serve serves one connection until it is closed or the command has ended.
func (s *session) serve(conn net.Conn, at *endpoint) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	if at.host == "" {
		s.proxy.serve(conn)
		return
	}
	server, failed := s.open(s.ctx, at.host, at.number)
	if failed != nil {
		reset(conn)
		return
	}
	relay(s.ctx, conn, conn, server)
}

// open connects to a host in the form of outbound.CanonicalHost if the grants allow it. It reports failures with
// notify.
func (s *session) open(ctx context.Context, host, number string) (*countedConn, *failure) {
	seen := s.watch()
	seen.host = host
	r, failed := s.findRule(host, number)
	var conn net.Conn
	if failed == nil {
		seen.rule = r.String()
		conn, failed = s.dial(ctx, r, host, number)
	}
	if failed != nil {
		s.notify(failed)
		seen.end(failed.outcome, 0, 0)
		return nil, failed
	}
	return &countedConn{Conn: conn, observer: seen}, nil
}

// openTarget is open for a host as a client wrote it.
func (s *session) openTarget(ctx context.Context, host, number string) (*countedConn, *failure) {
	canonical, err := outbound.CanonicalHost(host)
	if err == nil {
		number, err = outbound.CanonicalPort(number)
	}
	if err == nil {
		return s.open(ctx, canonical, number)
	}
	failed := &failure{OutcomeRefused, fmt.Sprintf("the connection is refused: %v", err)}
	s.notify(failed)
	s.watch().end(failed.outcome, 0, 0)
	return nil, failed
}

// notify reports why a connection failed, each text once.
func (s *session) notify(f *failure) {
	if s.client.Notify == nil || s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes[f.text] || len(s.notes) > maxNotes {
		return
	}
	text := f.text
	if len(s.notes) == maxNotes {
		text = "more connections were refused or failed"
	}
	s.notes[f.text] = true
	s.client.Notify(text)
}

// relay copies between a command's connection, from which reader reads, and a server, until both sides have ended or
// ctx ends. It closes server.
func relay(ctx context.Context, conn io.WriteCloser, reader io.Reader, server *countedConn) {
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Conn.Close() })()
	var copies sync.WaitGroup
	pass := func(to io.WriteCloser, from io.Reader) {
		if _, err := io.Copy(to, from); err != nil || closeWrite(to) != nil {
			_ = server.Conn.Close()
			_ = conn.Close()
		}
	}
	copies.Go(func() { pass(server, reader) })
	pass(conn, server)
	copies.Wait()
}

// closeWrite closes the sending side of a connection, or the whole connection if it has no CloseWrite.
func closeWrite(c io.Closer) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// reset closes a connection with a TCP reset, so that the peer sees a failure.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// proxy serves connections at the proxy's address.
type proxy struct {
	session *session
	server  *http.Server
	queue   *connListener
	serving sync.WaitGroup
}

func newProxy(s *session) *proxy {
	p := &proxy{session: s, queue: &connListener{conns: make(chan *peekedConn), closed: make(chan struct{})}}
	p.server = newServer(p)
	p.serving.Go(func() { _ = p.server.Serve(p.queue) })
	return p
}

// close stops the server. Its connections are closed already.
func (p *proxy) close() {
	_ = p.server.Close()
	p.serving.Wait()
}

// serve detects the client's protocol and serves the connection until it is closed.
func (p *proxy) serve(conn net.Conn) {
	c := &peekedConn{Conn: conn, reader: bufio.NewReader(conn), over: make(chan struct{})}
	_ = conn.SetReadDeadline(time.Now().Add(greetingTime))
	first, err := c.reader.Peek(1)
	switch {
	case err != nil:
	case first[0] == socksVersion:
		p.session.serveSOCKS(c)
	default:
		_ = conn.SetReadDeadline(time.Time{})
		if p.queue.put(p.session.ctx, c) {
			<-c.over
		}
	}
}

// peekedConn is a connection whose first byte was peeked at.
type peekedConn struct {
	net.Conn
	reader *bufio.Reader
	// over is closed when the HTTP server has finished with the connection.
	over chan struct{}
}

func (c *peekedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

func (c *peekedConn) CloseWrite() error { return closeWrite(c.Conn) }

// connListener is a net.Listener that returns the connections of put.
type connListener struct {
	conns  chan *peekedConn
	once   sync.Once
	closed chan struct{}
}

// put reports whether the connection was accepted.
func (q *connListener) put(ctx context.Context, c *peekedConn) bool {
	select {
	case q.conns <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *connListener) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *connListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(proxyAddress) }

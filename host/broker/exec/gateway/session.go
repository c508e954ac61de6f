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

	"github.com/hako-run/hako/host/broker/outbound"
)

const (
	// maxConnections is how many connections one command has at once.
	maxConnections = 64
	// maxNotes is how many different reasons a command is told why connections were refused.
	maxNotes = 16
	// greetingTime is how long a client of the proxy may take to say where it wants to go.
	greetingTime = 30 * time.Second
)

// Client is the command that a gateway serves.
type Client struct {
	// Tool is the tool that runs the command.
	Tool string
	// Notify is called with a sentence for each different reason why connections were not made. Nil drops them.
	Notify func(text string)
}

// session is one command's use of the gateway.
type session struct {
	*Gateway
	ctx    context.Context // ends with the command
	client Client
	slots  chan struct{} // holds one element per connection
	proxy  *proxy

	mu    sync.Mutex // guards notes
	notes map[string]bool
}

// Serve accepts connections on listeners, one for each address in Listen, until ctx ends. Then it closes all connections, and returns when nothing
// of them is left.
func (g *Gateway) Serve(ctx context.Context, listeners []net.Listener, client Client) {
	s := &session{Gateway: g, ctx: ctx, client: client, slots: make(chan struct{}, maxConnections), notes: map[string]bool{}}
	s.proxy = newProxy(s)
	var accepting, connections sync.WaitGroup
	for i, l := range listeners {
		accepting.Go(func() { s.accept(l, &g.ports[i], &connections) })
	}
	<-ctx.Done()
	for _, l := range listeners {
		_ = l.Close()
	}
	accepting.Wait()
	connections.Wait()
	s.proxy.close()
}

// accept takes connections until the listener is closed.
func (s *session) accept(l net.Listener, at *port, connections *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, for one
			s.log.WarnContext(s.ctx, "a command's connection is not accepted", "plugin", s.plugin, "err", err)
			if !s.sleep(100 * time.Millisecond) {
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
			s.note(&failure{OutcomeBusy, fmt.Sprintf("a connection is refused: a command has at most %d at once", maxConnections)})
			s.watch().end(OutcomeBusy, 0, 0)
			reset(conn)
		}
	}
}

// sleep reports whether the command still runs after d.
func (s *session) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// serve serves one connection until it is over or the command has ended.
func (s *session) serve(conn net.Conn, at *port) {
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
	join(s.ctx, conn, conn, server)
}

// open connects to a host in the form of outbound.CanonicalHost, if the grants allow it. Failures are noted.
func (s *session) open(ctx context.Context, host, number string) (*link, *failure) {
	seen := s.watch()
	seen.host = host
	r, failed := s.find(host, number)
	var conn net.Conn
	if failed == nil {
		seen.rule = r.String()
		conn, failed = s.dial(ctx, r, host, number)
	}
	if failed != nil {
		s.note(failed)
		seen.end(failed.outcome, 0, 0)
		return nil, failed
	}
	return &link{Conn: conn, sight: seen}, nil
}

// openTarget is open for a host as a client wrote it.
func (s *session) openTarget(ctx context.Context, host, number string) (*link, *failure) {
	canonical, err := outbound.CanonicalHost(host)
	if err == nil {
		number, err = canonicalPort(number)
	}
	if err == nil {
		return s.open(ctx, canonical, number)
	}
	failed := &failure{OutcomeRefused, fmt.Sprintf("the connection is refused: %v", err)}
	s.note(failed)
	s.watch().end(failed.outcome, 0, 0)
	return nil, failed
}

// note tells the command's user why a connection was not made.
func (s *session) note(f *failure) {
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

// join copies between a command's connection, from which reader reads, and a server, until both sides have ended or ctx has. It closes server.
func join(ctx context.Context, conn io.WriteCloser, reader io.Reader, server *link) {
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

// closeWrite says that nothing more will be written to a connection, or closes it if it knows no halves.
func closeWrite(c io.Closer) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// reset closes a connection so that the other side sees that it failed.
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
	queue   *queue
	serving sync.WaitGroup
}

func newProxy(s *session) *proxy {
	p := &proxy{session: s, queue: &queue{conns: make(chan *sniffed), closed: make(chan struct{})}}
	p.server = newServer(p)
	p.serving.Go(func() { _ = p.server.Serve(p.queue) })
	return p
}

// close ends the server. All of its connections are closed already.
func (p *proxy) close() {
	_ = p.server.Close()
	p.serving.Wait()
}

// serve finds out which protocol the client speaks, and returns when the connection is over.
func (p *proxy) serve(conn net.Conn) {
	c := &sniffed{Conn: conn, reader: bufio.NewReader(conn), over: make(chan struct{})}
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

// sniffed is a connection of which the first byte was looked at.
type sniffed struct {
	net.Conn
	reader *bufio.Reader
	// over is closed when the HTTP server is done with the connection.
	over chan struct{}
}

func (c *sniffed) Read(p []byte) (int, error) { return c.reader.Read(p) }

func (c *sniffed) CloseWrite() error { return closeWrite(c.Conn) }

// queue is a listener that accepts what is put into it.
type queue struct {
	conns  chan *sniffed
	once   sync.Once
	closed chan struct{}
}

// put reports whether the connection was accepted.
func (q *queue) put(ctx context.Context, c *sniffed) bool {
	select {
	case q.conns <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *queue) Addr() net.Addr { return net.TCPAddrFromAddrPort(proxyAddress) }

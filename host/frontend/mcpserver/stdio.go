package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/internal/strictjson"
)

// ServeStdio serves one client that writes a JSON-RPC message per line to in and reads such lines from out, until in
// ends, ctx is done or the server is shut down. Calls in flight may then still answer, for Options.Grace at most,
// before they are stopped. A line that is no message is answered with an error and does no harm.
// A client may also leave by closing its end of out; later output is lost. ServeStdio returns nil unless in or out
// fails otherwise. It closes neither, and abandons a running read from in when ctx ends.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	c := &stdioConn{
		out: out, stop: ctx.Done(), grace: s.options.Grace,
		lines: make(chan line), closed: make(chan struct{}),
		answered: make(chan struct{}, 1), waiting: map[jsonrpc.ID]*jsonrpc.Request{}, opened: time.Now(),
	}
	defer s.stdio.add(c)()
	go c.scan(in, int(s.now().Limits.Message))
	session, err := s.sdk.Connect(context.WithoutCancel(ctx), c, nil)
	if err != nil {
		return fmt.Errorf("serve MCP on stdio: %w", err)
	}
	c.session.Store(session)
	if err := session.Wait(); err != nil && !hasLeft(err) && ctx.Err() == nil {
		return fmt.Errorf("serve MCP on stdio: %w", err)
	}
	return nil
}

// hasLeft reports whether err means that the client has closed its end.
func hasLeft(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || isBrokenPipe(err)
}

// stdioConn is the SDK's transport and connection over lines. The SDK's own ends the session at the first line that is
// no message.
type stdioConn struct {
	opened time.Time
	// session is set once the SDK is connected.
	session atomic.Pointer[mcp.ServerSession]

	stop   <-chan struct{}
	grace  time.Duration
	lines  chan line
	closed chan struct{}
	close  sync.Once

	writing sync.Mutex // serialises writes to out
	out     io.Writer

	mu sync.Mutex // guards what follows
	// waiting has the calls that were read and not yet answered.
	waiting map[jsonrpc.ID]*jsonrpc.Request
	// unwritten counts the calls whose answer is not written yet, but for subscriptions, which end with the connection.
	unwritten int
	answered  chan struct{}
}

// stdioConns are the connections being served, each with a channel that is closed when it no longer is.
type stdioConns struct {
	mu    sync.Mutex
	ended map[*stdioConn]chan struct{}
}

// add registers c until the returned function is called.
func (s *stdioConns) add(c *stdioConn) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = map[*stdioConn]chan struct{}{}
	}
	ended := make(chan struct{})
	s.ended[c] = ended
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ended, c)
		close(ended)
	}
}

// all returns the connections being served.
func (s *stdioConns) all() []*stdioConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.ended))
}

// wait waits until no connection is served, or ctx is done. Connections end by themselves when the server drains, after
// their answers are written.
func (s *stdioConns) wait(ctx context.Context) error {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.ended))
	s.mu.Unlock()
	for _, ended := range all {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// line is one line of input, or what ended the input.
type line struct {
	data []byte
	long bool
	err  error
}

var _ mcp.Connection = (*stdioConn)(nil)

// Connect implements mcp.Transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *stdioConn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *stdioConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// scan reads lines until the input or the connection ends.
func (c *stdioConn) scan(in io.Reader, limit int) {
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(reader, limit)
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads one line. Bytes beyond limit are skipped.
func readLine(reader *bufio.Reader, limit int) line {
	var l line
	for {
		part, err := reader.ReadSlice('\n')
		if l.long = l.long || len(l.data)+len(part) > limit; l.long {
			l.data = nil
		} else {
			l.data = append(l.data, part...)
		}
		switch {
		case err == nil:
			return l
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(l.data) > 0 && errors.Is(err, io.EOF):
			return l // the last line may lack its end
		}
		return line{err: err}
	}
}

// Read implements mcp.Connection: it returns the next message, and answers invalid lines.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case l := <-c.lines:
			if l.err != nil {
				c.drain()
				return nil, l.err
			}
			message, err := c.accept(l)
			if message != nil || err != nil {
				return message, err
			}
		case <-c.stop:
			c.drain()
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		}
	}
}

// accept returns a line's message, or answers an invalid line and returns nil.
func (c *stdioConn) accept(l line) (jsonrpc.Message, error) {
	l.data = transport.TrimMark(l.data)
	if !l.long && len(bytes.TrimSpace(l.data)) == 0 {
		return nil, nil
	}
	message, refusal := parse(l)
	if refusal != nil {
		return nil, c.write(refusal)
	}
	request, ok := message.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return message, nil
	}
	if !c.await(request) {
		// An error with the ID would be taken for the answer to the earlier request.
		return nil, c.write(&jsonrpc.Response{Error: duplicateID(request.ID)})
	}
	withLine(request, c)
	return message, nil
}

// await adds a call that was read. It reports false if one with its ID is in flight already.
func (c *stdioConn) await(request *jsonrpc.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[request.ID]; ok {
		return false
	}
	if c.waiting[request.ID] = request; counts(request) {
		c.unwritten++
	}
	return true
}

// counts reports whether the end of the connection waits for the answer to a request.
func counts(request *jsonrpc.Request) bool { return request.Method != transport.MethodListen }

// parse decodes a line, or returns the answer to an invalid one (JSON-RPC 2.0, section 5.1). Batches are refused: only
// MCP 2025-03-26 has them.
func parse(l line) (jsonrpc.Message, *jsonrpc.Response) {
	refuse := func(id jsonrpc.ID, code int64, text string) (jsonrpc.Message, *jsonrpc.Response) {
		return nil, &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: text}}
	}
	var invalid error
	if !l.long {
		invalid = strictjson.Check(l.data)
	}
	switch {
	case l.long:
		return refuse(jsonrpc.ID{}, jsonrpc.CodeParseError, "the line is longer than the server's limit")
	case invalid != nil:
		return refuse(jsonrpc.ID{}, jsonrpc.CodeParseError, "the line is not valid JSON: "+invalid.Error())
	case bytes.HasPrefix(bytes.TrimSpace(l.data), []byte("[")):
		return refuse(jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "batches are not supported: send one message per line")
	}
	message, err := transport.DecodeMessage(l.data)
	if err != nil {
		return refuse(transport.IDOf(l.data), jsonrpc.CodeInvalidRequest, "the line "+transport.Describe(err))
	}
	return message, nil
}

// Write implements mcp.Connection.
func (c *stdioConn) Write(_ context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return c.write(message)
	}
	if response.Error != nil {
		response.Error = withCode(response.Error)
	}
	c.mu.Lock()
	request := c.waiting[response.ID]
	delete(c.waiting, response.ID) // before the answer, after which the client may use the ID again
	c.mu.Unlock()
	if request != nil {
		request.Params, request.Extra = nil, nil // as in transport.Conn
	}
	err := c.write(response)
	if request != nil && counts(request) {
		c.mu.Lock()
		c.unwritten--
		c.mu.Unlock()
	}
	select {
	case c.answered <- struct{}{}:
	default:
	}
	return err
}

func (c *stdioConn) write(message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.out.Write(append(data, '\n'))
	return err
}

// Notify sends a notification to the client.
func (c *stdioConn) Notify(_ context.Context, method string, params any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.write(&jsonrpc.Request{Method: method, Params: data})
}

// drain waits until the calls that were read are answered, or the grace is over. The SDK cancels what is left once Read
// has returned an error.
func (c *stdioConn) drain() {
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	for c.unanswered() > 0 {
		select {
		case <-c.answered:
		case <-timer.C:
			return
		case <-c.closed:
			return
		}
	}
}

func (c *stdioConn) unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unwritten
}

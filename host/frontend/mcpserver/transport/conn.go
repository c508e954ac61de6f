package transport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Conn connects the SDK's server to one client over HTTP: for a session (up to MCP 2025-11-25), or for one request
// (from 2026-07-28). Deliver passes it messages of the client. The server's answers go to the stream that was named in
// Expect, its other messages to the stream in the context (WithStream), else to the standalone stream.
type Conn struct {
	session string
	// replica begins the IDs of requests to the client, whose answers can come to another replica.
	replica  string
	incoming chan jsonrpc.Message
	closed   chan struct{}
	close    sync.Once

	mu         sync.Mutex // guards what follows
	expected   map[jsonrpc.ID]expected
	standalone *Stream
}

// expected is a request in flight, and the stream for its answer.
type expected struct {
	stream  *Stream
	request *jsonrpc.Request
}

var (
	_ mcp.Transport                = (*Conn)(nil)
	_ mcp.Connection               = (*Conn)(nil)
	_ mcp.ProtocolVersionSupporter = (*Conn)(nil)
)

// NewConn returns a connection for a session, or with an empty ID for one request. An empty replica means a server
// without other replicas.
func NewConn(session, replica string) *Conn {
	return &Conn{session: session, replica: replica, incoming: make(chan jsonrpc.Message, 1),
		closed: make(chan struct{}), expected: map[jsonrpc.ID]expected{}}
}

// Connect implements mcp.Transport.
func (c *Conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *Conn) SessionID() string { return c.session }

// SupportsProtocolVersion implements mcp.ProtocolVersionSupporter.
func (c *Conn) SupportsProtocolVersion(version string) bool {
	return c.session == "" || version < Sessionless
}

// Read implements mcp.Connection.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-c.incoming:
		return message, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements mcp.Connection. Requests that the server still works on are cancelled.
func (c *Conn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// Expect makes the answers to these requests go to s. If a request with one of their IDs is in flight, it returns that
// request and changes nothing. Once a request is answered, its Params and Extra are nil.
func (c *Conn) Expect(s *Stream, requests ...*jsonrpc.Request) (duplicate *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range requests {
		if _, ok := c.expected[request.ID]; ok {
			return request
		}
	}
	for _, request := range requests {
		c.expected[request.ID] = expected{s, request}
	}
	return nil
}

// Expects reports whether a request with this ID is in flight.
func (c *Conn) Expects(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.expected[id]
	return ok
}

// Unexpect undoes Expect for requests that are not delivered.
func (c *Conn) Unexpect(requests ...*jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range requests {
		delete(c.expected, request.ID)
	}
}

// Deliver passes a message of the client to the server. It reports false if the connection is closed.
func (c *Conn) Deliver(message jsonrpc.Message) bool {
	select {
	case c.incoming <- message:
		return true
	case <-c.closed:
		return false
	}
}

// Attach makes s the standalone stream until detach is called. It reports false if there is another one.
func (c *Conn) Attach(s *Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standalone != nil {
		return false
	}
	c.standalone = s
	return true
}

// Detach ends the role of the standalone stream.
func (c *Conn) Detach(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standalone == s {
		c.standalone = nil
	}
}

// Closed is closed with the connection.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Write implements mcp.Connection. A message that cannot be delivered does not end the connection.
func (c *Conn) Write(ctx context.Context, message jsonrpc.Message) error {
	switch message := message.(type) {
	case *jsonrpc.Response:
		encoded, err := encode(message)
		if err != nil {
			return err
		}
		c.mu.Lock()
		e, ok := c.expected[message.ID]
		delete(c.expected, message.ID)
		c.mu.Unlock()
		if !ok {
			return errRejected
		}
		e.request.Params, e.request.Extra = nil, nil // the SDK's queue keeps the last request of a session
		return e.stream.Answer(c.status(message.Error), encoded)
	case *jsonrpc.Request:
		s := streamOf(ctx)
		if s == nil {
			c.mu.Lock()
			s = c.standalone
			c.mu.Unlock()
		}
		if s == nil || message.IsCall() && c.session == "" {
			return errRejected
		}
		data, err := jsonrpc.EncodeMessage(c.tagged(message))
		if err != nil {
			return err
		}
		return s.Send(data)
	}
	return errRejected
}

// Notify sends a notification to the client.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.Write(ctx, &jsonrpc.Request{Method: method, Params: encoded})
}

// status is the HTTP status of an error. Sessions answer every request with 200; from 2026-07-28 on, requests that
// break the protocol are refused (MCP 2026-07-28, transports, errors).
func (c *Conn) status(err error) int {
	if c.session != "" {
		return http.StatusOK
	}
	return Status(err)
}

// Status is the HTTP status of the error of a request of 2026-07-28.
func Status(err error) int {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return http.StatusOK
	}
	switch wire.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// MethodCancelled withdraws a request.
const MethodCancelled = "notifications/cancelled"

// tagged puts the replica into the ID of a request to the client, and into the notification that withdraws one: the SDK
// numbers requests separately in each session at each replica.
func (c *Conn) tagged(request *jsonrpc.Request) *jsonrpc.Request {
	switch {
	case c.replica == "":
		return request
	case request.IsCall():
		tagged := *request
		tagged.ID = c.tag(request.ID)
		return &tagged
	case request.Method == MethodCancelled:
		var params map[string]any
		if json.Unmarshal(request.Params, &params) != nil {
			return request
		}
		id, err := jsonrpc.MakeID(params["requestId"])
		if _, isNumber := id.Raw().(int64); err != nil || !isNumber {
			return request
		}
		params["requestId"] = c.tag(id).Raw()
		encoded, err := json.Marshal(params)
		if err != nil {
			return request
		}
		return &jsonrpc.Request{Method: request.Method, Params: encoded}
	}
	return request
}

func (c *Conn) tag(id jsonrpc.ID) jsonrpc.ID {
	number, ok := id.Raw().(int64)
	if !ok {
		return id
	}
	tagged, err := jsonrpc.MakeID(c.replica + "-" + strconv.FormatInt(number, 10))
	if err != nil {
		return id
	}
	return tagged
}

// Untag returns the replica that waits for a client's response, and the response as that replica's server expects it.
// ok is false if the ID names no replica.
func Untag(response *jsonrpc.Response) (replica string, bare *jsonrpc.Response, ok bool) {
	text, _ := response.ID.Raw().(string)
	replica, digits, ok := strings.Cut(text, "-")
	number, err := strconv.ParseInt(digits, 10, 53)
	if !ok || err != nil || number < 0 {
		return "", nil, false
	}
	id, err := jsonrpc.MakeID(float64(number))
	if err != nil {
		return "", nil, false
	}
	untagged := *response
	untagged.ID = id
	return replica, &untagged, true
}

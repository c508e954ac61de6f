package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// sessionOf returns the session that a request names, or nil if it names none. If there is no such session, it answers
// like the SDK and returns false. A session of another user is answered in the same way.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, x *exchange) (*session, bool) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		return nil, true
	}
	session := s.sessions.of(id)
	if session == nil {
		var err error
		if session, err = s.replicas.find(r.Context(), id, x); err != nil {
			s.replicas.unreachable(w, err)
			return nil, false
		}
	}
	if session == nil || session.owner != x.owner() || session.toolset != x.toolset {
		http.Error(w, notFound, http.StatusNotFound)
		return nil, false
	}
	return session, true
}

// serveBodyless serves requests without a body: the event stream of a session (GET), and its end (DELETE).
func (s *Server) serveBodyless(w *transport.Response, r *http.Request, x *exchange) {
	if err := s.limiter.Allow(clientKey(x), 1); err != nil {
		s.refuse(w, refusedRate, err)
		return
	}
	if transport.IsSessionless(r.Header) {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	r, cancel := x.whileValid(r)
	defer cancel()
	session, ok := s.sessionOf(w, r, x)
	if !ok {
		return
	}
	if session == nil {
		refuseBodyless(w, r.Method)
		return
	}
	if r.Method == http.MethodDelete {
		s.replicas.end(w, r, session)
		return
	}
	defer session.listen()()
	s.listen(w, r, session)
}

// refuseBodyless answers a request without a session. Outside of a session there is no event stream, which a client is
// told with status 405 (MCP 2025-11-25, transports, listening for messages from the server).
func refuseBodyless(w http.ResponseWriter, method string) {
	status, text := http.StatusBadRequest, "DELETE ends the session in the Mcp-Session-Id header, which is missing."
	if method == http.MethodGet {
		w.Header().Set("Allow", "POST")
		status, text = http.StatusMethodNotAllowed, `This is an endpoint of MCP for programs. GET opens the event stream `+
			`of a session: send "initialize" with POST first, and then its Mcp-Session-Id header.`
	}
	http.Error(w, text, status)
}

// listen serves an event stream of a session: its own, or one that the client resumes.
func (s *Server) listen(w *transport.Response, r *http.Request, session *session) {
	if !transport.CheckGet(w, r.Header) {
		return
	}
	stream, after, resumed := parseEventID(r.Header.Get("Last-Event-Id"))
	switch {
	case len(r.Header.Values("Last-Event-Id")) > 0 && !resumed:
		http.Error(w, "The Last-Event-ID is not from this server.", http.StatusBadRequest)
		return
	case resumed && stream != "":
		s.replicas.follow(w, r, session, stream, after)
		return
	}
	conn, _, err := s.connection(r.Context(), session)
	if err != nil {
		s.replicas.fail(w, err)
		return
	}
	own := transport.NewStandalone(w, s.replicas.keepsEvents())
	if !conn.Attach(own) {
		http.Error(w, "stream ID conflicts with ongoing stream", http.StatusConflict)
		return
	}
	defer conn.Detach(own)
	defer own.Detach()
	var missed [][]byte
	if resumed {
		missed = s.missed(session)
	}
	own.Begin(missed...)
	select {
	case <-r.Context().Done():
	case <-conn.Closed():
	}
}

// connection returns the connection of a session to the SDK's server. It restores a session that has none here.
func (s *Server) connection(ctx context.Context, session *session) (*transport.Conn, *mcp.ServerSession, error) {
	if err := s.replicas.restore(ctx, session); err != nil {
		return nil, nil, err
	}
	conn, sdk := s.sessions.connectionOf(session)
	if conn == nil {
		return nil, nil, sessionstore.ErrNone // it has ended meanwhile
	}
	return conn, sdk, nil
}

// serveInSession serves messages of a client with a session, or of a client that opens one.
func (s *Server) serveInSession(w *transport.Response, r *http.Request, x *exchange, body *transport.Body) {
	session, ok := s.sessionOf(w, r, x)
	if !ok {
		return
	}
	if session == nil {
		if opens(w, r.Header, body) && transport.CheckPost(w, r.Header) {
			s.open(w, r, x, body)
		}
		return
	}
	if body.Batch && !session.takesBatches(r.Header) {
		s.refuseMessage(w, &transport.Refusal{Code: jsonrpc.CodeInvalidRequest, Text: transport.NoBatches})
		return
	}
	session.enter()
	defer session.leave()
	if body.Call == nil && refuseMethod(w, body) || !transport.CheckPost(w, r.Header) {
		return
	}
	if call := body.Call; call != nil && s.isDirect(r.Header, x, session, call) {
		s.answerCall(w, r, x, session, call)
		return
	}
	messages, err := body.Decoded()
	if err == nil {
		messages, err = s.replicas.route(r.Context(), session, messages)
	}
	if err == nil && len(messages) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if err == nil {
		x.conn, _, err = s.connection(r.Context(), session)
	}
	if err != nil {
		s.replicas.fail(w, err)
		return
	}
	s.serveBySDK(w, r, x, session, messages)
}

// refuseMethod answers a message of a session whose method is wrong, or ignores it, and reports whether it did. A
// request that has an ID is answered with status 200, as any other error of a request: clients take another status for
// a failure of the connection.
func refuseMethod(w http.ResponseWriter, body *transport.Body) bool {
	switch wrong := body.Wrong; {
	case wrong != nil:
		status := http.StatusOK
		if !wrong.ID.IsValid() {
			status = http.StatusBadRequest
		}
		writeError(w, status, wrong.ID, wrong.Code, wrong.Text)
	case body.Ignored:
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// maxOpening is the most bytes of an initialize request: its parameters are kept with the session.
const maxOpening = 64 << 10

// opens reports whether a message that comes without a session opens one, and answers it otherwise.
func opens(w http.ResponseWriter, h http.Header, body *transport.Body) bool {
	switch {
	case body.Method() == "initialize" && len(body.Raw) <= maxOpening:
		return true
	case body.Method() == "initialize":
		writeError(w, http.StatusBadRequest, body.ID(), jsonrpc.CodeInvalidParams,
			"The client's info and capabilities are larger than 64 KiB.")
		return false
	}
	messages, err := body.Decoded()
	if err == nil && !body.Batch {
		if request, ok := messages[0].(*jsonrpc.Request); ok {
			if wrong := transport.CheckVersion(h, request); wrong != nil {
				if transport.CheckPost(w, h) {
					writeError(w, http.StatusBadRequest, wrong.ID, wrong.Code, wrong.Text)
				}
				return false
			}
		}
	}
	writeError(w, http.StatusBadRequest, body.ID(), jsonrpc.CodeInvalidRequest,
		`Send "initialize" first, and then its Mcp-Session-Id header with every request.`)
	return false
}

// open opens a session. receive registers it when the SDK has accepted it.
func (s *Server) open(w *transport.Response, r *http.Request, x *exchange, body *transport.Body) {
	x.conn = transport.NewConn(rand.Text(), s.replicas.own())
	sdk, err := s.sdk.Connect(context.Background(), x.conn, nil)
	if err != nil {
		http.Error(w, "failed connection", http.StatusInternalServerError)
		return
	}
	s.serveBySDK(w, r, x, nil, body.Messages)
	if sdk.InitializeParams() == nil {
		_ = sdk.Close() // no request was served
	}
}

// hasPrimes reports whether a client expects an event with the ID of a stream at its beginning.
func hasPrimes(h http.Header) bool { return h.Get("Mcp-Protocol-Version") >= "2025-11-25" }

// serveBySDK has the SDK answer messages of a session, which is nil while it is being opened.
func (s *Server) serveBySDK(w *transport.Response, r *http.Request, x *exchange, session *session,
	messages []jsonrpc.Message) {
	var requests []*jsonrpc.Request
	for _, message := range messages {
		request, ok := message.(*jsonrpc.Request)
		if !ok {
			continue
		}
		if wrong := refuseSessionless(r.Header, request); wrong != nil {
			writeErrorOf(w, http.StatusBadRequest, request.ID, wrong)
			return
		}
		request.Extra = x.extra(r.Header)
		if request.IsCall() {
			requests = append(requests, request)
		}
		if request.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", x.conn.SessionID())
		}
	}
	if len(requests) > 0 {
		x.stream = transport.NewEvents(w, len(requests))
		defer x.stream.Detach()
		var duplicate *jsonrpc.Request
		if session == nil {
			duplicate = x.conn.Expect(x.stream, requests...)
		} else {
			duplicate = session.expect(x.conn, x.stream, requests)
		}
		if duplicate != nil {
			s.refuseDuplicate(w, duplicate.ID)
			return
		}
		x.gone = r.Context()
		if session != nil && s.replicas.keep(x.stream, x.conn.SessionID(), requests,
			hasPrimes(r.Header)) {
			x.gone = nil // whoever has left can fetch the answer
		}
	}
	for _, message := range messages {
		if !x.conn.Deliver(message) {
			if x.stream == nil {
				http.Error(w, "session is closing", http.StatusNotFound)
			}
			return
		}
	}
	if x.stream == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case <-x.stream.Done():
	case <-r.Context().Done():
	case <-x.conn.Closed():
	}
}

func (s *Server) refuseDuplicate(w http.ResponseWriter, id jsonrpc.ID) {
	wrong := duplicateID(id)
	writeError(w, http.StatusBadRequest, id, wrong.Code, wrong.Message)
}

// duplicateID is the error of a request with the ID of another one that is in flight.
func duplicateID(id jsonrpc.ID) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: fmt.Sprintf("duplicate in-flight request ID %v", id.Raw())}
}

// cancelled cancels the call that a client withdraws, if the SDK does not have it; the SDK cancels the others.
func (s *Server) cancelled(session *session, message jsonrpc.Message) {
	request, ok := message.(*jsonrpc.Request)
	if !ok || request.Method != transport.MethodCancelled {
		return
	}
	var params mcp.CancelledParams
	if json.Unmarshal(request.Params, &params) == nil {
		session.cancel(params.RequestID)
	}
}

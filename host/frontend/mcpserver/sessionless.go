package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/pdk/abi"
)

// serveSessionless serves a message of a protocol version without sessions.
func (s *Server) serveSessionless(w http.ResponseWriter, r *http.Request, x *exchange, body *transport.Body) {
	if err := transport.DecodeName(r.Header); err != nil {
		writeError(w, http.StatusBadRequest, body.ID(), mcp.CodeHeaderMismatch, err.Error())
		return
	}
	if wrong := body.Wrong; wrong != nil && wrong.Code != jsonrpc.CodeMethodNotFound {
		writeError(w, http.StatusBadRequest, wrong.ID, wrong.Code, wrong.Text)
		return
	}
	if !transport.CheckPost(w, r.Header) || s.replicas.forward(w, r, x, body) {
		return
	}
	if call := body.Call; call != nil && s.isDirect(r.Header, x, nil, call) {
		s.answerCall(w, r, x, nil, call)
		return
	}
	request, err := s.checkSessionless(r.Header, x, body)
	switch {
	case err != nil:
		writeError(w, err.status, err.ID, err.Code, err.Text)
	case request == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.serveOnce(w, r, x, request)
	}
}

// checkSessionless compares the headers with the body. It returns the request, or nil for a message without an answer.
func (s *Server) checkSessionless(h http.Header, x *exchange, body *transport.Body) (*jsonrpc.Request,
	*refusedRequest) {
	messages, err := body.Decoded()
	if err != nil {
		return nil, &refusedRequest{http.StatusBadRequest,
			transport.Refusal{Code: jsonrpc.CodeInvalidRequest, Text: "The body " + transport.NoMessage + "."}}
	}
	request, ok := messages[0].(*jsonrpc.Request)
	if !ok {
		return nil, nil
	}
	if wrong := body.Wrong; wrong != nil {
		return nil, &refusedRequest{http.StatusNotFound, *wrong}
	}
	if wrong := transport.CheckVersion(h, request); wrong != nil {
		return nil, &refusedRequest{http.StatusBadRequest, *wrong}
	}
	err = transport.CheckNames(h, request)
	if err == nil && request.Method == abi.CallTool {
		err = transport.CheckCall(h, request, func(tool string) []transport.ParamHeader {
			headers, _ := s.paramHeaders(h, x, tool)
			return headers
		})
	}
	if err != nil {
		return nil, &refusedRequest{http.StatusBadRequest,
			transport.Refusal{ID: request.ID, Code: mcp.CodeHeaderMismatch, Text: err.Error()}}
	}
	if !request.IsCall() {
		return nil, nil
	}
	return request, nil
}

// refusedRequest is a Refusal with its HTTP status.
type refusedRequest struct {
	status int
	transport.Refusal
}

// refuseSessionless returns an error for a request in a session whose _meta names a version without sessions.
func refuseSessionless(h http.Header, request *jsonrpc.Request) *jsonrpc.Error {
	if transport.CheckVersion(http.Header{}, request) == nil || request.Method == "server/discover" {
		return nil
	}
	requested := cmp.Or(h.Get("Mcp-Protocol-Version"), "2025-03-26")
	supported := slices.DeleteFunc(
		mcp.SupportedProtocolVersions(),
		func(v string) bool { return v >= transport.Sessionless },
	)
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: requested})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion,
		Message: fmt.Sprintf("protocol version %q is not supported by this server", requested), Data: data}
}

// serveOnce has the SDK answer one request without a session.
func (s *Server) serveOnce(w http.ResponseWriter, r *http.Request, x *exchange, request *jsonrpc.Request) {
	listen := request.Method == transport.MethodListen
	x.stream = transport.NewJSON(w)
	// A JSON body has no room for notifications before the answer.
	if listen || bytes.Contains(request.Params, []byte(`"progressToken"`)) {
		x.stream = transport.NewEvents(w, 1)
	}
	x.conn, x.gone = transport.NewConn("", ""), r.Context()
	sdk, err := s.sdk.Connect(context.Background(), x.conn,
		&mcp.ServerSessionOptions{State: new(mcp.ServerSessionState)})
	if err != nil {
		http.Error(w, "failed connection", http.StatusInternalServerError)
		return
	}
	defer sdk.Close()
	if listen {
		x.conn.Attach(x.stream)
	}
	request.Extra = x.extra(r.Header)
	x.conn.Expect(x.stream, request)
	x.conn.Deliver(request)
	select {
	case <-x.stream.Done():
	case <-x.conn.Closed():
	case <-r.Context().Done():
		_ = x.conn.Close() // which cancels the request
	}
	x.stream.Detach()
}

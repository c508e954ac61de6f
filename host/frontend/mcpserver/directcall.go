package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"runtime"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// A tools/call over HTTP in its usual form is read once, passed to the pipeline and answered here. The SDK would decode
// it about ten times and pass it through four goroutines, which costs more than the sandbox. Calls in another form, and
// calls of tools that are not in the catalog, go to the SDK, which says what is wrong with them.

// answerCall answers a tools/call. session is nil in protocol versions without sessions.
func (s *Server) answerCall(w http.ResponseWriter, r *http.Request, x *exchange, session *session,
	call *transport.Call) {
	var id string
	var able *mcp.ClientCapabilities
	if session != nil {
		id, able = session.id, session.capabilities
	} else {
		able = capabilitiesOf(call)
	}
	whole := x.newCall(r.Header, id, abi.Request{Method: abi.CallTool, Name: call.Name, Arguments: call.Arguments})
	if session != nil {
		setClient(&whole.Caller, session.client)
	}
	setMeta(&whole.Caller, call)
	asks := s.mayAsk(whole.Caller, call.Name, able)

	if session != nil || call.ProgressToken != nil {
		x.stream = transport.NewEvents(w, 1)
	} else {
		x.stream = transport.NewJSON(w)
	}
	defer x.stream.Detach()
	ctx := r.Context()
	resumable := session != nil && (asks || call.ProgressToken != nil)
	if resumable {
		ctx = context.WithoutCancel(ctx) // whoever has left can fetch the answer
	}
	ctx, cancel := s.bound(ctx, nil)
	defer cancel()
	if session != nil && !session.begin(call.ID, cancel) {
		s.refuseDuplicate(w, call.ID)
		return
	}
	if resumable &&
		!s.replicas.keep(x.stream, session.id, []*jsonrpc.Request{{ID: call.ID}}, hasPrimes(r.Header)) {
		stop := context.AfterFunc(r.Context(), cancel)
		defer stop()
	}
	if call.ProgressToken != nil {
		whole.Progress = progressOf(call.ProgressToken, x.stream)
	}

	var missing []string
	use := func(ctx context.Context, call *pipeline.Call) (response *abi.Response, err error) {
		response, missing, err = s.useTool(ctx, call)
		return response, err
	}
	answer := reply{id: call.ID}
	if asks || call.RequestState != "" || call.InputResponses != nil {
		request := &request{able: able, sessionless: session == nil, x: x, before: roundOf(call)}
		if session != nil {
			request.ask = s.askInSession(session)
		}
		ctx = transport.WithStream(ctx, x.stream)
		answer.response, answer.state, answer.requests, answer.err = s.answer(ctx, request, whole, use)
	} else {
		answer.response, answer.err = use(ctx, whole)
	}
	status := http.StatusOK
	if session != nil {
		session.end(call.ID) // before the answer, after which the client may use the ID again
		fit(answer.response, session.version)
	} else {
		answer.server = s.info
		status = transport.Status(answer.err)
	}
	if x.identity.CanStepUp() && len(missing) > 0 {
		x.under.Auth.RequestScopes(w.Header(), x.identity, missing)
		status = http.StatusForbidden
	}
	_ = x.stream.Answer(status, answer.appendTo) // a client that has left misses nothing
	runtime.KeepAlive(answer.response)           // as in Server.answer
}

// isDirect reports whether a call can be answered without the SDK: the catalog has the tool, and headers and body agree
// (MCP 2026-07-28, transports, standard headers; basic, _meta). session is nil in protocol versions without sessions.
func (s *Server) isDirect(h http.Header, x *exchange, session *session, c *transport.Call) bool {
	headers, listed := s.paramHeaders(h, x, c.Name)
	version := h.Get("Mcp-Protocol-Version")
	if session != nil {
		return listed && c.Version == nil && c.RequestState == "" && c.InputResponses == nil &&
			transport.WithSessions[session.version] && (version == "" || transport.WithSessions[version])
	}
	return listed && version == transport.Sessionless && string(c.Version) == `"`+transport.Sessionless+`"` &&
		h.Get("Mcp-Method") == abi.CallTool && h.Get("Mcp-Name") == c.Name &&
		c.Capabilities != nil && decodes[mcp.ClientCapabilities](c.Capabilities) &&
		(c.ClientInfo == nil || decodes[mcp.Implementation](c.ClientInfo)) &&
		(c.InputResponses == nil || decodes[mcp.InputResponseMap](c.InputResponses)) &&
		(len(headers) == 0 || transport.CheckParams(h, headers, c.Arguments) == nil)
}

func decodes[T any](data json.RawMessage) bool {
	return string(data) == "{}" || json.Unmarshal(data, new(T)) == nil
}

// capabilitiesOf returns the client's capabilities in a call, or nil where it has none.
func capabilitiesOf(c *transport.Call) *mcp.ClientCapabilities {
	capabilities := new(mcp.ClientCapabilities)
	if string(c.Capabilities) == "{}" || json.Unmarshal(c.Capabilities, capabilities) != nil {
		return nil
	}
	return capabilities
}

// roundOf returns the parts of a call that continue an earlier one.
func roundOf(c *transport.Call) round {
	before := round{state: c.RequestState}
	_ = json.Unmarshal(c.InputResponses, &before.answers) // isDirect has decoded them
	return before
}

// setMeta adds client and trace from the call's metadata.
func setMeta(caller *pipeline.Caller, c *transport.Call) {
	if info := new(mcp.Implementation); c.ClientInfo != nil && json.Unmarshal(c.ClientInfo, info) == nil {
		setClient(caller, info)
	}
	if parent := unquoted(c.TraceParent); parent != "" {
		setTrace(caller, parent, unquoted(c.TraceState))
	}
}

// unquoted returns the text of a JSON string without escape sequences, or empty.
func unquoted(text json.RawMessage) string {
	if len(text) < 2 || bytes.IndexByte(text, '\\') >= 0 {
		return ""
	}
	return string(text[1 : len(text)-1])
}

package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// This file is the short way of a tools/call over HTTP. The SDK decodes every message about ten times and takes it
// through four goroutines, which costs more than the sandbox. So a call that has nothing unusual about it is read once,
// passed on and answered here. It is the middle of the way only: who may call, and how much, has been settled before,
// and the pipeline is the same. Whatever the rules here do not know goes to the SDK, which also has all the words for
// what is wrong with a request. So does a call about which the person at the client may be asked: that takes more than
// one answer.

// callDirectly answers a call of the era without sessions, or reports false if it is one for the SDK. call may be nil.
func (s *Server) callDirectly(w *response, r *http.Request, over *exchange, call *plainCall) bool {
	if call == nil || !s.isPlain(r.Header, call) || !call.agrees(r.Header) {
		return false
	}
	whole := over.newCall(r.Header, "", call.request())
	call.describe(&whole.Caller)
	if s.mayAsk(whole.Caller, call.name, call.client()) {
		return false
	}
	ctx, cancel := s.boundTo(r)
	defer cancel()
	response, err := s.useTool(ctx, whole)
	reply := reply{id: call.id, response: response, err: err, server: s.info}
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("Content-Type", "application/json")
	_ = w.finish(reply.status(), reply.appendTo(nil)) // a client that has gone misses nothing
	return true
}

// callDirectlyIn answers a call in a session, or reports false if it is one for the SDK. session and call may be nil.
func (s *Server) callDirectlyIn(session *session, w *response, r *http.Request, over *exchange, call *plainCall) bool {
	if session == nil || call == nil || !s.isPlain(r.Header, call) || !call.agreesIn(session, r.Header) {
		return false
	}
	whole := over.newCall(r.Header, session.id, call.request())
	described(&whole.Caller, session.client)
	call.describe(&whole.Caller)
	if s.mayAsk(whole.Caller, call.name, session.capabilities) {
		return false
	}
	ctx, cancel := s.boundTo(r)
	defer cancel()
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "keep-alive")
	if !session.begin(call.id, cancel) {
		writeError(w, http.StatusBadRequest, call.id, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("duplicate in-flight request ID %v", call.id.Raw()))
		return true
	}
	response, err := s.useTool(ctx, whole)
	session.end(call.id) // before the answer, after which the client may use the ID again
	if response != nil {
		fit(response, session.version)
	}
	reply := reply{id: call.id, response: response, err: err}
	_ = w.finish(http.StatusOK, reply.appendEvent(nil)) // a client that has gone misses nothing
	return true
}

// boundTo returns a context that ends with the request and with the server.
func (s *Server) boundTo(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.base, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// describe adds what the call's metadata says of the client and of the trace that it belongs to.
func (c *plainCall) describe(caller *pipeline.Caller) {
	if info := new(mcp.Implementation); c.clientInfo != nil && json.Unmarshal(c.clientInfo, info) == nil {
		described(caller, info)
	}
	if parent := unquoted(c.trace); parent != "" {
		belongs(caller, parent, unquoted(c.traceState))
	}
}

// unquoted is what a JSON string without escape sequences says, or empty.
func unquoted(text json.RawMessage) string {
	if len(text) < 2 || bytes.IndexByte(text, '\\') >= 0 {
		return ""
	}
	return string(text[1 : len(text)-1])
}

func (c *plainCall) request() abi.Request {
	return abi.Request{Method: abi.CallTool, Name: c.name, Arguments: c.arguments}
}

// isPlain reports whether neither the tool nor the headers ask for anything but a call and its answer.
func (s *Server) isPlain(h http.Header, call *plainCall) bool {
	return s.mirror.isPlain(call.name) && isJSON(h.Get("Content-Type")) && acceptsBoth(h.Values("Accept")) &&
		len(h.Values("Last-Event-Id")) == 0
}

func isJSON(contentType string) bool {
	const want = "application/json"
	if contentType == want {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == want
}

// acceptsBoth reports whether a client names both forms of an answer, as it must (MCP, transports, sending messages).
func acceptsBoth(accept []string) bool {
	var whole, stream bool
	for _, value := range accept {
		for kind := range strings.SplitSeq(value, ",") {
			switch strings.TrimSpace(kind) {
			case "application/json":
				whole = true
			case "text/event-stream":
				stream = true
			}
		}
	}
	return whole && stream
}

// agrees reports whether headers and body say the same, as 2026-07-28 wants it of them (transports, standard headers;
// basic, _meta).
func (c *plainCall) agrees(h http.Header) bool {
	return h.Get("Mcp-Protocol-Version") == sessionless && string(c.version) == `"`+sessionless+`"` &&
		h.Get("Mcp-Method") == abi.CallTool && h.Get("Mcp-Name") == c.name &&
		c.capabilities != nil && decodes[mcp.ClientCapabilities](c.capabilities) &&
		(c.clientInfo == nil || decodes[mcp.Implementation](c.clientInfo))
}

// agreesIn reports whether the call is of the session's era.
func (c *plainCall) agreesIn(session *session, h http.Header) bool {
	version := h.Get("Mcp-Protocol-Version")
	return c.version == nil && withSession[session.version] && (version == "" || withSession[version])
}

// client is what the client says that it can do, or nil where that is nothing.
func (c *plainCall) client() *mcp.ClientCapabilities {
	capabilities := new(mcp.ClientCapabilities)
	if string(c.capabilities) == "{}" || json.Unmarshal(c.capabilities, capabilities) != nil {
		return nil
	}
	return capabilities
}

// withSession has the versions of the era with sessions.
var withSession = func() map[string]bool {
	versions := map[string]bool{}
	for _, version := range mcp.SupportedProtocolVersions() {
		versions[version] = version < sessionless
	}
	return versions
}()

func decodes[T any](data json.RawMessage) bool {
	return string(data) == "{}" || json.Unmarshal(data, new(T)) == nil
}

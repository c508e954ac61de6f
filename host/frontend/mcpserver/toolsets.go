package mcpserver

import (
	"bytes"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// viewer is an optional ability of a Pipeline: it returns the offer to a caller.
type viewer interface {
	View(caller pipeline.Caller) *catalog.View
	// MayChoose reports whether the caller may use the toolset that it names.
	MayChoose(caller pipeline.Caller) bool
}

// offersToolset reports whether there is a toolset with the name in the path, for the caller. It answers the request
// otherwise.
func (s *Server) offersToolset(w http.ResponseWriter, r *http.Request, x *exchange) bool {
	if s.viewer == nil || x.under.Toolsets.Set(x.toolset) == nil {
		http.Error(w, "There is no toolset of this name: look up the name, or use "+Path+" without one.",
			http.StatusNotFound)
		return false
	}
	if !s.viewer.MayChoose(x.newCall(r.Header, "", abi.Request{}).Caller) {
		s.options.Observer.RequestRefused(refusedAuth)
		http.Error(w, "You may not use this toolset: the operator sets who may in toolsets.sets.",
			http.StatusForbidden)
		return false
	}
	return true
}

// view returns the offer to the caller: without toolsets the whole catalog.
func (s *Server) view(caller pipeline.Caller) *catalog.View {
	if s.viewer != nil && s.now().Toolsets != nil {
		return s.viewer.View(caller)
	}
	return s.catalog.View()
}

// viewFor returns the offer to the caller of a request.
func (s *Server) viewFor(req mcp.Request) *catalog.View {
	if s.now().Toolsets == nil {
		return s.catalog.View()
	}
	return s.view(s.newCall(req, nil, abi.Request{}).Caller)
}

// paramHeaders returns the arguments of a tool that are repeated in headers. It reports false if the caller is not
// offered the tool.
func (s *Server) paramHeaders(h http.Header, x *exchange, name string) (headers []transport.ParamHeader, ok bool) {
	if s.now().Toolsets == nil {
		return s.catalogSync.listed(name)
	}
	tool, ok := s.view(x.newCall(h, "", abi.Request{}).Caller).Tool(name)
	switch {
	case !ok:
		return nil, false
	case tool.Origin == nil:
		return s.catalogSync.listed(name)
	case !bytes.Contains(tool.Spec.InputSchema, []byte(`"x-mcp-header"`)):
		return nil, true
	}
	return transport.ParamHeaders(tool.Spec.InputSchema), true
}

package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// viewer is an optional ability of a Caller: it knows what callers are offered.
type viewer interface {
	View(caller pipeline.Caller) *catalog.View
	// MayChoose reports whether the caller may use the toolset that it names.
	MayChoose(caller pipeline.Caller) bool
}

// offersToolset reports whether there is a toolset with the name in the path, for the caller. It answers the request
// otherwise.
func (s *Server) offersToolset(w http.ResponseWriter, r *http.Request, over *exchange) bool {
	calls, ok := s.calls.(viewer)
	if !ok || over.under.Toolsets.Set(over.toolset) == nil {
		http.Error(w, "There is no toolset of this name: look up the name, or use "+Path+" without one.",
			http.StatusNotFound)
		return false
	}
	if !calls.MayChoose(over.newCall(r.Header, "", abi.Request{}).Caller) {
		s.options.Observer.RequestRefused(RefusedAuth)
		http.Error(w, "This toolset is not for you: the operator says in toolsets.sets whom it is for.",
			http.StatusForbidden)
		return false
	}
	return true
}

// view returns what the caller is offered. Without toolsets that is the catalog.
func (s *Server) view(caller pipeline.Caller) *catalog.View {
	if calls, ok := s.calls.(viewer); ok && s.now().Toolsets != nil {
		return calls.View(caller)
	}
	return s.catalog.View()
}

// viewFor returns what is offered to the caller of a request.
func (s *Server) viewFor(req mcp.Request) *catalog.View {
	if s.now().Toolsets == nil {
		return s.catalog.View()
	}
	return s.view(s.newCall(req, nil, abi.Request{}).Caller)
}

// paramHeaders returns the arguments of a tool that are repeated in headers. It reports false if the caller is not
// offered the tool.
func (s *Server) paramHeaders(h http.Header, over *exchange, name string) (headers []transport.ParamHeader, ok bool) {
	if s.now().Toolsets == nil {
		return s.catalogSync.listed(name)
	}
	tool, ok := s.view(over.newCall(h, "", abi.Request{}).Caller).Tool(name)
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

// listSelected answers a list request from a selection of the catalog. The SDK lists only the whole catalog.
func (s *Server) listSelected(ctx context.Context, req mcp.Request, view *catalog.View) (mcp.Result, error) {
	switch req := req.(type) {
	case *mcp.ListToolsRequest:
		caller := s.newCall(req, nil, abi.Request{}).Caller
		tools := slices.DeleteFunc(slices.Clone(view.Tools), func(t *catalog.Tool) bool { return s.hides(caller, t.Name) })
		describe := func(t *catalog.Tool) *mcp.Tool {
			if governor, ok := s.calls.(governor); ok {
				t = governor.Described(caller, t)
			}
			return s.catalogSync.tool(t)
		}
		name := func(t *catalog.Tool) string { return t.Name }
		page, next, err := pageOf(s, tools, name, describe, cmp.Or(req.Params, &mcp.ListToolsParams{}).Cursor)
		result := &mcp.ListToolsResult{Tools: page, NextCursor: next}
		s.setSelected(ctx, req, &result.Cacheable)
		return orError(result, err)
	case *mcp.ListResourcesRequest:
		uri := func(r *catalog.Resource) string { return r.Spec.URI }
		page, next, err := pageOf(s, view.Resources, uri, s.catalogSync.resource,
			cmp.Or(req.Params, &mcp.ListResourcesParams{}).Cursor)
		result := &mcp.ListResourcesResult{Resources: page, NextCursor: next}
		s.setSelected(ctx, req, &result.Cacheable)
		return orError(result, err)
	case *mcp.ListResourceTemplatesRequest:
		uri := func(t *catalog.Template) string { return t.Spec.URITemplate }
		page, next, err := pageOf(s, view.Templates, uri, s.catalogSync.template,
			cmp.Or(req.Params, &mcp.ListResourceTemplatesParams{}).Cursor)
		result := &mcp.ListResourceTemplatesResult{ResourceTemplates: page, NextCursor: next}
		s.setSelected(ctx, req, &result.Cacheable)
		return orError(result, err)
	case *mcp.ListPromptsRequest:
		name := func(p *catalog.Prompt) string { return p.Name }
		page, next, err := pageOf(s, view.Prompts, name, s.catalogSync.prompt,
			cmp.Or(req.Params, &mcp.ListPromptsParams{}).Cursor)
		result := &mcp.ListPromptsResult{Prompts: page, NextCursor: next}
		s.setSelected(ctx, req, &result.Cacheable)
		return orError(result, err)
	}
	panic(fmt.Sprintf("%T requests no list", req))
}

// setSelected is setCacheable for a list that is the caller's own.
func (s *Server) setSelected(ctx context.Context, req mcp.Request, c *mcp.Cacheable) {
	s.setCacheable(ctx, req, c)
	c.CacheScope = "private"
}

// pageOf returns the page of a list that follows the cursor, and the cursor of the next page. The list is sorted by
// name; a cursor is the last name before the page. show converts an entry for clients.
func pageOf[T, M any](s *Server, list []T, name func(T) string, show func(T) M, cursor string) (page []M, next string,
	err error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this list"}
	}
	if cursor != "" {
		start, _ := slices.BinarySearchFunc(list, string(after)+"\x00", func(entry T, after string) int {
			return strings.Compare(name(entry), after)
		})
		list = list[start:]
	}
	if len(list) > s.options.PageSize {
		list = list[:s.options.PageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(name(list[len(list)-1])))
	}
	page = make([]M, len(list))
	for i, entry := range list {
		page[i] = show(entry)
	}
	return page, next, nil
}

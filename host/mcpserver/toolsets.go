package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
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

// The SDK lists the catalog. Selections of it are listed here, with cursors of their own.

func (s *Server) listSelectedTools(ctx context.Context, req *mcp.ListToolsRequest,
	view *catalog.View) (*mcp.ListToolsResult, error) {
	caller := s.newCall(req, nil, abi.Request{}).Caller
	tools := slices.DeleteFunc(slices.Clone(view.Tools), func(t *catalog.Tool) bool { return s.hides(caller, t.Name) })
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	result := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
	page, err := pageOf(s, tools, func(t *catalog.Tool) string { return t.Name }, cursor, &result.NextCursor)
	for _, tool := range page {
		if governor, ok := s.calls.(governor); ok {
			tool = governor.Described(caller, tool)
		}
		result.Tools = append(result.Tools, s.catalogSync.tool(tool))
	}
	s.setSelected(ctx, req, &result.Cacheable)
	return result, err
}

func (s *Server) listSelectedResources(ctx context.Context, req *mcp.ListResourcesRequest,
	view *catalog.View) (*mcp.ListResourcesResult, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	page, err := pageOf(s, view.Resources, func(r *catalog.Resource) string { return r.Spec.URI }, cursor,
		&result.NextCursor)
	for _, resource := range page {
		result.Resources = append(result.Resources, s.catalogSync.resource(resource))
	}
	s.setSelected(ctx, req, &result.Cacheable)
	return result, err
}

func (s *Server) listSelectedTemplates(ctx context.Context, req *mcp.ListResourceTemplatesRequest,
	view *catalog.View) (*mcp.ListResourceTemplatesResult, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	result := &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{}}
	page, err := pageOf(s, view.Templates, func(t *catalog.Template) string { return t.Spec.URITemplate },
		cursor, &result.NextCursor)
	for _, template := range page {
		result.ResourceTemplates = append(result.ResourceTemplates, s.catalogSync.template(template))
	}
	s.setSelected(ctx, req, &result.Cacheable)
	return result, err
}

func (s *Server) listSelectedPrompts(ctx context.Context, req *mcp.ListPromptsRequest,
	view *catalog.View) (*mcp.ListPromptsResult, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}}
	page, err := pageOf(s, view.Prompts, func(p *catalog.Prompt) string { return p.Name }, cursor,
		&result.NextCursor)
	for _, prompt := range page {
		result.Prompts = append(result.Prompts, s.catalogSync.prompt(prompt))
	}
	s.setSelected(ctx, req, &result.Cacheable)
	return result, err
}

// setSelected is setCacheable for a list that is the caller's own.
func (s *Server) setSelected(ctx context.Context, req mcp.Request, c *mcp.Cacheable) {
	s.setCacheable(ctx, req, c)
	c.CacheScope = "private"
}

// pageOf returns the page of a list, which is sorted by name, that follows the cursor: the last name before it.
func pageOf[T any](s *Server, list []T, name func(T) string, cursor string, next *string) ([]T, error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this list"}
	}
	start := 0
	if cursor != "" {
		start, _ = slices.BinarySearchFunc(list, string(after)+"\x00", func(entry T, after string) int {
			return strings.Compare(name(entry), after)
		})
	}
	page := list[start:]
	if len(page) > s.options.PageSize {
		page = page[:s.options.PageSize]
		*next = base64.RawURLEncoding.EncodeToString([]byte(name(page[len(page)-1])))
	}
	return page, nil
}

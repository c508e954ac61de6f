package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// listTools lists the tools that the caller may call, or ask for. Pages become shorter, but only the last may be empty.
func (s *Server) listTools(ctx context.Context, method string, req *mcp.ListToolsRequest,
	next mcp.MethodHandler) (mcp.Result, error) {
	if req.Params == nil {
		req.Params = new(mcp.ListToolsParams)
	}
	caller := s.newCall(req, nil, abi.Request{}).Caller
	for {
		result, err := next(ctx, method, req)
		page, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		page.Tools = slices.DeleteFunc(page.Tools, func(tool *mcp.Tool) bool { return s.hides(caller, tool.Name) })
		for i, tool := range page.Tools {
			page.Tools[i] = s.described(caller, tool)
		}
		if len(page.Tools) > 0 || page.NextCursor == "" {
			return page, nil
		}
		req.Params.Cursor = page.NextCursor
	}
}

// hides reports whether a tool exists but is not visible to the caller.
func (s *Server) hides(caller pipeline.Caller, name string) bool {
	if s.governor == nil {
		return false
	}
	tool, ok := s.view(caller).Tool(name)
	return ok && !s.governor.Visible(caller, tool)
}

// described returns a tool with its description for the caller. listed is shared between callers and not changed.
func (s *Server) described(caller pipeline.Caller, listed *mcp.Tool) *mcp.Tool {
	tool, ok := s.catalog.View().Tool(listed.Name)
	if s.governor == nil || !ok {
		return listed
	}
	described := s.governor.Described(caller, tool)
	if described == tool {
		return listed
	}
	own := *listed
	own.Description = described.Spec.Description.In(s.now().Language)
	return &own
}

// listSelected responds to a list request from a selection of the catalog. The SDK lists only the whole catalog. The
// list is the caller's own.
func (s *Server) listSelected(ctx context.Context, req mcp.Request, view *catalog.View) (list mcp.Result, err error) {
	var cacheable *mcp.Cacheable
	switch req := req.(type) {
	case *mcp.ListToolsRequest:
		caller := s.newCall(req, nil, abi.Request{}).Caller
		tools := slices.DeleteFunc(slices.Clone(view.Tools), func(t *catalog.Tool) bool {
			return s.hides(caller, t.Name)
		})
		describe := func(t *catalog.Tool) *mcp.Tool {
			if s.governor != nil {
				t = s.governor.Described(caller, t)
			}
			return s.catalogSync.tool(t)
		}
		result := new(mcp.ListToolsResult)
		result.Tools, result.NextCursor, err = pageOf(s, tools, toolName, describe,
			cmp.Or(req.Params, &mcp.ListToolsParams{}).Cursor)
		list, cacheable = result, &result.Cacheable
	case *mcp.ListResourcesRequest:
		result := new(mcp.ListResourcesResult)
		result.Resources, result.NextCursor, err = pageOf(s, view.Resources, resourceURI, s.catalogSync.resource,
			cmp.Or(req.Params, &mcp.ListResourcesParams{}).Cursor)
		list, cacheable = result, &result.Cacheable
	case *mcp.ListResourceTemplatesRequest:
		result := new(mcp.ListResourceTemplatesResult)
		result.ResourceTemplates, result.NextCursor, err = pageOf(s, view.Templates, templateURI,
			s.catalogSync.template, cmp.Or(req.Params, &mcp.ListResourceTemplatesParams{}).Cursor)
		list, cacheable = result, &result.Cacheable
	case *mcp.ListPromptsRequest:
		result := new(mcp.ListPromptsResult)
		result.Prompts, result.NextCursor, err = pageOf(s, view.Prompts, promptName, s.catalogSync.prompt,
			cmp.Or(req.Params, &mcp.ListPromptsParams{}).Cursor)
		list, cacheable = result, &result.Cacheable
	default:
		panic(fmt.Sprintf("%T requests no list", req))
	}
	if err != nil {
		return nil, err
	}
	s.setCacheable(ctx, req, cacheable)
	cacheable.CacheScope = "private"
	return list, nil
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

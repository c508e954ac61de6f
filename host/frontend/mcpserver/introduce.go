package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// introduce is the middleware that completes the first answer to clients with the server's identity and instructions.
func (s *Server) introduce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		switch result := result.(type) {
		case *mcp.InitializeResult:
			if result != nil {
				result.ServerInfo, result.Instructions = s.introduction, s.instructions(req)
			}
		case *mcp.DiscoverResult:
			if result != nil {
				if result.Meta == nil {
					result.Meta = mcp.Meta{}
				}
				result.Meta[mcp.MetaKeyServerInfo], result.Instructions = s.introduction, s.instructions(req)
			}
		}
		return result, err
	}
}

func (s *Server) instructions(req mcp.Request) string {
	if now := s.now(); now.Instructions != "" || !now.Overview {
		return now.Instructions
	}
	return s.overview(s.newCall(req, nil, abi.Request{}).Caller)
}

// maxOverview bounds the names of one source, and the sources, in an overview.
const maxOverview = 20

// overview describes the offer to the caller.
func (s *Server) overview(caller pipeline.Caller) string {
	view := s.view(caller)
	tools := map[string][]string{}
	for _, tool := range view.Tools {
		if !s.hides(caller, tool.Name) {
			tools[tool.Source.Name] = append(tools[tool.Source.Name], tool.Name)
		}
	}
	var b strings.Builder
	b.WriteString("hako runs each tool in a sandbox of its own.")
	if len(tools) == 0 {
		b.WriteString(" There are no tools at the moment; the list may change.")
	} else {
		b.WriteString(" Tools, by plugin:\n")
	}
	for i, source := range slices.Sorted(maps.Keys(tools)) {
		if i == maxOverview {
			fmt.Fprintf(&b, "and %d more plugins\n", len(tools)-i)
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", source, some(tools[source]))
	}
	if n := len(view.Resources) + len(view.Templates); n > 0 {
		fmt.Fprintf(&b, "There are %d resources and templates of resources.\n", n)
	}
	if len(view.Prompts) > 0 {
		var prompts []string
		for _, prompt := range view.Prompts {
			prompts = append(prompts, prompt.Name)
		}
		fmt.Fprintf(&b, "Prompts: %s.\n", some(prompts))
	}
	return strings.TrimSpace(b.String())
}

func some(names []string) string {
	if len(names) <= maxOverview {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxOverview], ", "), len(names)-maxOverview)
}

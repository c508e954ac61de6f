package inspect

import (
	"encoding/json"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/toolschema"
)

// ToolInfo is a tool in the form of MCP, with its plugin.
type ToolInfo struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Plugin       string          `json:"plugin"`
}

// Tools returns the tools that callers of a tenant can use. locale is the language of the texts.
func Tools(h *host.Host, tenant, locale string) []ToolInfo {
	list := []ToolInfo{}
	for _, t := range h.Catalog().View().Tools {
		if !h.Offered(tenant, t) {
			continue
		}
		list = append(list, ToolInfo{
			Name: t.Name, Title: t.Spec.Title.In(locale), Description: t.Spec.Description.In(locale),
			InputSchema: toolschema.Listed(t.Spec.InputSchema), OutputSchema: t.Spec.OutputSchema,
			Plugin: t.Source.Name,
		})
	}
	return list
}

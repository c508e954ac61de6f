package inspect

import (
	"encoding/json"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
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

// Tools returns the tools that a caller is offered and can use, and counts those of them that the policy denies
// whatever the arguments, which are left out as in the lists of clients.
func Tools(h *host.Host, caller pipeline.Caller, rules *policy.Policy) (list []ToolInfo, denied int) {
	list = []ToolInfo{}
	locale := caller.Locale
	who := policy.Caller{User: caller.User, Tenant: caller.Tenant, Frontend: caller.Frontend}
	for _, t := range h.View(caller).Tools {
		if !h.Offered(caller.Tenant, t) {
			continue
		}
		if !t.Source.Own && !rules.Visible(who.Call(t.Name, t.Source.Name, t.Hints())) {
			denied++
			continue
		}
		t = h.Described(caller, t)
		list = append(list, ToolInfo{
			Name: t.Name, Title: t.Spec.Title.In(locale), Description: t.Spec.Description.In(locale),
			InputSchema: toolschema.Listed(t.Spec.InputSchema), OutputSchema: t.Spec.OutputSchema,
			Plugin: t.Source.Name,
		})
	}
	return list, denied
}

// Tokens estimates how much of a model's context the tool takes; see toolschema.Tokens.
func (t *ToolInfo) Tokens() int { return toolschema.Tokens(t.Name, t.Description, t.InputSchema) }

// ToolSchema is a tool as models that plan its calls get it.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ToolSchemas returns tools with the schemas of their parameters.
func ToolSchemas(list []ToolInfo) []ToolSchema {
	schemas := make([]ToolSchema, 0, len(list))
	for _, t := range list {
		schemas = append(schemas, ToolSchema{t.Name, strings.TrimSpace(t.Description), t.InputSchema})
	}
	return schemas
}

package llm

import (
	"encoding/json"
	"log/slog"
)

// maxCustomTools is the API's limit of tools per agent (platform.claude.com/docs/en/managed-agents/tools).
const maxCustomTools = 256

// CustomTools adapts tools to Anthropic's managed agents, where they are defined once and called later. It logs each
// warning once and is safe for concurrent use.
type CustomTools struct{ adapter *toolAdapter }

// NewCustomTools returns CustomTools that log which tools are omitted, and why. A nil logger discards.
func NewCustomTools(logger *slog.Logger) *CustomTools {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	d := (*messagesAPI)(nil).dialect()
	d.tools = maxCustomTools
	return &CustomTools{newToolAdapter(d, logger)}
}

// Fit adapts tools for definition. Tools whose schema the API would refuse are omitted.
func (c *CustomTools) Fit(tools []Tool) *CustomToolbox {
	return &CustomToolbox{c.adapter.adaptAll(tools)}
}

// CustomToolbox is a set of tools with names and schemas that the API accepts. It maps calls back to the original
// names.
type CustomToolbox struct{ toolbox *toolset }

// Definitions returns the adapted tools in the order given. The API requires a description: a tool without one gets its
// name.
func (b *CustomToolbox) Definitions() []Tool {
	list := make([]Tool, 0, len(b.toolbox.tools))
	for _, tool := range b.toolbox.tools {
		schema, err := json.Marshal(tool.parameters.schema)
		if err != nil {
			continue // impossible: it was decoded from JSON
		}
		definition := Tool{Name: tool.name, Description: tool.Description, Schema: schema}
		if definition.Description == "" {
			definition.Description = tool.Name
		}
		list = append(list, definition)
	}
	return list
}

// Call returns a call with the tool's original name. A call of a tool outside the set keeps its name. Arguments that are
// not an object make it Invalid.
func (b *CustomToolbox) Call(id, name string, arguments json.RawMessage) Call {
	return b.toolbox.incoming(id, name, string(arguments))
}

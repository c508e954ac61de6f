package llm

import (
	"encoding/json"
	"log/slog"
)

// maxCustomTools is how many tools an agent takes (platform.claude.com/docs/en/managed-agents/tools).
const maxCustomTools = 256

// CustomTools makes tools fit for Anthropic's managed agents, where they are defined once and called later. It remembers what it has
// warned of, and is safe for concurrent use.
type CustomTools struct{ workshop *workshop }

// NewCustomTools returns CustomTools that logs which tools are left out, and why. A nil logger discards that.
func NewCustomTools(logger *slog.Logger) *CustomTools {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	d := (*messagesAPI)(nil).dialect()
	d.tools = maxCustomTools
	return &CustomTools{newWorkshop(d, logger)}
}

// Fit returns tools as they are to be defined, and what turns calls of them back. Those whose schema the API would refuse are left out.
func (c *CustomTools) Fit(tools []Tool) *CustomToolbox { return &CustomToolbox{c.workshop.fit(tools)} }

// CustomToolbox is a set of tools with names and schemas that the API accepts.
type CustomToolbox struct{ toolbox *toolbox }

// Definitions are the tools as they are defined, in the order given. The API wants a description, so that a tool without one gets its
// name as such.
func (b *CustomToolbox) Definitions() []Tool {
	list := make([]Tool, 0, len(b.toolbox.tools))
	for _, tool := range b.toolbox.tools {
		schema, err := json.Marshal(tool.parameters.schema)
		if err != nil {
			continue // it was decoded from JSON
		}
		definition := Tool{Name: tool.name, Description: tool.Description, Schema: schema}
		if definition.Description == "" {
			definition.Description = tool.Name
		}
		list = append(list, definition)
	}
	return list
}

// Call is a call with the tool's own name and names of arguments. One of no tool in the set keeps its name; arguments that are no object
// make it Invalid.
func (b *CustomToolbox) Call(id, name string, arguments json.RawMessage) Call {
	return b.toolbox.incoming(id, name, string(arguments))
}

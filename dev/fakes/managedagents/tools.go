package managedagents

import (
	"encoding/json"
	"slices"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// maxTools limits the tools of an agent.
const maxTools = 256

// Forms of names of tools and of their arguments.
var (
	toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
	keyName  = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// Types of tools.
const (
	customType  = "custom"
	toolsetType = "agent_toolset_20260401"
	mcpType     = "mcp_toolset"
)

// customTool is a definition of a tool that the client runs.
type customTool struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      *struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		AnyOf      json.RawMessage            `json:"anyOf"`
		OneOf      json.RawMessage            `json:"oneOf"`
		AllOf      json.RawMessage            `json:"allOf"`
	} `json:"input_schema"`
}

// toolset is a group of tools that the agent or an MCP server runs. The API fills in what is left out.
type toolset struct {
	Type    string            `json:"type"`
	Server  string            `json:"mcp_server_name,omitempty"`
	Configs []json.RawMessage `json:"configs"`
	Default struct {
		Enabled bool            `json:"enabled"`
		Policy  json.RawMessage `json:"permission_policy"`
	} `json:"default_config"`
}

// checkTools refuses what the API does, and returns the tools as it shows them.
func checkTools(tools, servers []json.RawMessage) ([]json.RawMessage, error) {
	if len(tools) > maxTools {
		return nil, anthropic.Invalid("tools: at most %d", maxTools)
	}
	shown, names := []json.RawMessage{}, map[string]bool{}
	for i, raw := range tools {
		var tool customTool
		if err := decode(raw, &tool); err != nil {
			return nil, err
		}
		var err error
		switch tool.Type {
		case customType:
			err = tool.check(i, names)
		case toolsetType, mcpType:
			raw, err = filledIn(i, raw, servers)
		default:
			err = anthropic.Invalid("tools.%d.type: %q is not a tool type", i, tool.Type)
		}
		if err != nil {
			return nil, err
		}
		shown = append(shown, raw)
	}
	return shown, nil
}

// check refuses a definition that the API does. names are those before it.
func (tool *customTool) check(i int, names map[string]bool) error {
	switch {
	case !toolName().MatchString(tool.Name):
		return anthropic.Invalid("tools.%d.name: String should match pattern %s", i, toolName())
	case names[tool.Name]:
		return anthropic.Invalid("tools.%d.name: occurs twice", i)
	case tool.Description == "":
		return anthropic.Invalid("tools.%d.description: Field required", i)
	case tool.Schema == nil || tool.Schema.Type != "object":
		return anthropic.Invalid("tools.%d.input_schema.type: must be object", i)
	case tool.Schema.AnyOf != nil || tool.Schema.OneOf != nil || tool.Schema.AllOf != nil:
		return anthropic.Invalid("tools.%d.input_schema: oneOf, allOf and anyOf are not supported at the top level", i)
	}
	for key := range tool.Schema.Properties {
		if !keyName().MatchString(key) {
			return anthropic.Invalid("tools.%d.input_schema.properties: Property keys should match pattern %s", i,
				keyName())
		}
	}
	names[tool.Name] = true
	return nil
}

// filledIn is a toolset as the API shows it.
func filledIn(i int, raw json.RawMessage, servers []json.RawMessage) (json.RawMessage, error) {
	set := toolset{Configs: []json.RawMessage{}}
	set.Default.Enabled, set.Default.Policy = true, json.RawMessage(`{"type":"always_allow"}`)
	if err := decode(raw, &set); err != nil {
		return nil, err
	}
	known := func(server json.RawMessage) bool {
		var named struct{ Name string }
		return json.Unmarshal(server, &named) == nil && named.Name == set.Server
	}
	if set.Type == mcpType && !slices.ContainsFunc(servers, known) {
		return nil, anthropic.Invalid("tools.%d.mcp_server_name: there is no server %q in mcp_servers", i, set.Server)
	}
	return json.Marshal(set)
}

// tools are the names of those that the agent may call: the default one all of the script's.
func (s *Server) tools(a *agent) (names []string) {
	if len(a.Tools) == 0 && a.ID == DefaultAgent && s.Script != nil {
		for _, step := range s.Script.Steps {
			for _, call := range step.Call {
				names = append(names, call.Tool)
			}
		}
	}
	for _, raw := range a.Tools {
		var tool customTool
		if decode(raw, &tool) == nil && tool.Type == customType {
			names = append(names, tool.Name)
		}
	}
	return names
}

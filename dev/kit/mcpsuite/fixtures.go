//lint:file-ignore SA1019 the conformance suite still asks for what MCP 2026-07-28 deprecates.

// Package mcpsuite implements the fixtures of the MCP conformance suite that no plugin can offer: they need requests
// from the server to the client, MCP's logging, or the protocol itself. All other fixtures come from a plugin
// (dev/kit/guesttest/guests/conformance), as every tool does. Names, schemas and some texts are the suite's.
//
// Configure and Register make a mcpserver.Extension. The shipped program does not have it: see make conformance.
package mcpsuite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	watchedResource = "test://watched-resource"
	contextPrompt   = "test_input_required_result_prompt"
)

var anyObject = json.RawMessage(`{"type":"object"}`)

// Configure adds the capability that the fixtures need.
func Configure(options *mcp.ServerOptions) {
	options.Capabilities.Logging = &mcp.LoggingCapabilities{}
}

// Register adds the fixtures to a server and returns their names and URIs.
func Register(server *mcp.Server) (names []string) {
	tools := sessionFixtures()
	maps.Copy(tools, sessionlessFixtures(server))
	maps.Copy(tools, inputFixtures())
	for name, handle := range tools {
		server.AddTool(&mcp.Tool{Name: name, Description: "Conformance fixture", InputSchema: anyObject}, handle)
	}
	server.AddPrompt(&mcp.Prompt{Name: contextPrompt, Description: "Conformance fixture"}, askForContext)
	server.AddResource(&mcp.Resource{URI: watchedResource, Name: "watched", MIMEType: "text/plain"}, readWatched)
	return append(slices.Collect(maps.Keys(tools)), contextPrompt, watchedResource)
}

func readWatched(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: watchedResource, MIMEType: "text/plain", Text: "watched"},
	}}, nil
}

func say(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// sessionFixtures are those for versions with sessions, in which servers send requests to clients.
func sessionFixtures() map[string]mcp.ToolHandler {
	return map[string]mcp.ToolHandler{
		"test_tool_with_logging": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, step := range []string{"started", "working", "done"} {
				if err := logTo(ctx, req, step); err != nil {
					return nil, err
				}
				time.Sleep(50 * time.Millisecond) // the suite wants them apart
			}
			return say("logged three times"), nil
		},
		"test_sampling": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := req.Session.CreateMessage(ctx, sample(argument(req, "prompt")))
			if err != nil {
				return failed(err.Error()), nil
			}
			text, _ := answer.Content.(*mcp.TextContent)
			if text == nil {
				return failed("the model's answer is not text"), nil
			}
			return say("LLM response: %s", text.Text), nil
		},
		"test_elicitation": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, req, argument(req, "message"), askString("username"))
		},
		"test_elicitation_sep1034_defaults": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult,
			error) {
			return elicit(ctx, req, "Take the defaults?", json.RawMessage(elicitDefaults))
		},
		"test_elicitation_sep1330_enums": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult,
			error) {
			return elicit(ctx, req, "Which ones?", json.RawMessage(elicitEnums))
		},
		"test_reconnection": func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Extra != nil && req.Extra.CloseSSEStream != nil {
				req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			return say("still here"), nil
		},
	}
}

const elicitDefaults = `{"type":"object","properties":{
	"name":{"type":"string","default":"John Doe"},
	"age":{"type":"integer","default":30},
	"score":{"type":"number","default":95.5},
	"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
	"verified":{"type":"boolean","default":true}}}`

const elicitEnums = `{"type":"object","properties":{
	"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]},
	"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["One","Two"]},
	"untitledMulti":{"type":"array","minItems":1,"items":{"type":"string","enum":["option1","option2"]}},
	"titledMulti":{"type":"array","minItems":1,"items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]}}}}`

func argument(req *mcp.CallToolRequest, name string) string {
	var arguments map[string]any
	if err := json.Unmarshal(req.Params.Arguments, &arguments); err != nil {
		return ""
	}
	text, _ := arguments[name].(string)
	return text
}

func logTo(ctx context.Context, req *mcp.CallToolRequest, text string) error {
	return req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: text})
}

func sample(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}}, MaxTokens: 100,
	}
}

// askString is the schema of an answer with one text in it.
func askString(name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}},"required":[%[1]q]}`,
		name))
}

func elicit(ctx context.Context, req *mcp.CallToolRequest, message string, schema json.RawMessage) (*mcp.CallToolResult,
	error) {
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: schema})
	if err != nil {
		return failed(err.Error()), nil
	}
	content, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	return say("action=%s content=%s", answer.Action, content), nil
}

// sessionlessFixtures are those for versions without sessions.
func sessionlessFixtures(server *mcp.Server) map[string]mcp.ToolHandler {
	return map[string]mcp.ToolHandler{
		"test_missing_capability": needSampling,
		"test_streaming_elicitation": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return say("asked nothing"), nil
		},
		"test_logging_tool": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_ = logTo(ctx, req, "test_logging_tool") // an answer of one JSON object has no room for it
			return say("logged, if that was wanted"), nil
		},
		"test_trigger_tool_change": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddTool(&mcp.Tool{Name: "transient", InputSchema: anyObject}, needSampling)
			server.RemoveTools("transient")
			return say("the tools have changed"), nil
		},
		"test_trigger_prompt_change": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddPrompt(&mcp.Prompt{Name: "transient", Description: "Conformance fixture"}, askForContext)
			server.RemovePrompts("transient")
			return say("the prompts have changed"), nil
		},
	}
}

func needSampling(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if capabilities := req.ClientCapabilities(); capabilities != nil && capabilities.Sampling != nil {
		return say("the client can sample"), nil
	}
	return nil, &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "this tool needs a client that can sample",
		Data:    json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
	}
}

//lint:file-ignore SA1019 the conformance suite still asks for what MCP 2026-07-28 deprecates.

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The fixtures of the conformance suite that no plugin can offer: they need server-to-client requests, MCP's logging,
// or the protocol itself. All others come from a plugin (guesttest/guests/conformance), the way every tool does. Names,
// schemas and some texts are the suite's.

const watchedResource = "test://watched-resource"

// conformanceOptions adds what the fixtures need of the SDK's server.
func conformanceOptions(options *mcp.ServerOptions) {
	options.Capabilities.Logging = &mcp.LoggingCapabilities{}
}

func (s *Server) addFixtures() {
	s.fixtures = map[string]bool{}
	for name, handle := range s.legacyFixtures() {
		s.addFixture(name, handle)
	}
	for name, handle := range s.modernFixtures() {
		s.addFixture(name, handle)
	}
	for name, handle := range inputFixtures() {
		s.addFixture(name, handle)
	}
	s.fixtures["test_input_required_result_prompt"] = true
	s.sdk.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Conformance fixture"},
		askForContext)
	s.fixtures[watchedResource] = true
	s.sdk.AddResource(&mcp.Resource{URI: watchedResource, Name: "watched", MIMEType: "text/plain"}, readWatched)
}

func (s *Server) addFixture(name string, handle mcp.ToolHandler) {
	s.fixtures[name] = true
	s.sdk.AddTool(&mcp.Tool{Name: name, Description: "Conformance fixture", InputSchema: anyObject}, handle)
}

func readWatched(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: watchedResource, MIMEType: "text/plain", Text: "watched"},
	}}, nil
}

func say(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// legacyFixtures are of the era with sessions, in which servers ask clients directly.
func (s *Server) legacyFixtures() map[string]mcp.ToolHandler {
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
				return toolResult(failedTool(err.Error()), ""), nil
			}
			text, _ := answer.Content.(*mcp.TextContent)
			if text == nil {
				return toolResult(failedTool("the model's answer is not text"), ""), nil
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
		return toolResult(failedTool(err.Error()), ""), nil
	}
	content, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	return say("action=%s content=%s", answer.Action, content), nil
}

// modernFixtures are of the era without sessions.
func (s *Server) modernFixtures() map[string]mcp.ToolHandler {
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
			s.sdk.AddTool(&mcp.Tool{Name: "transient", InputSchema: anyObject}, s.callTool)
			s.sdk.RemoveTools("transient")
			return say("the tools have changed"), nil
		},
		"test_trigger_prompt_change": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.sdk.AddPrompt(&mcp.Prompt{Name: "transient", Description: "Conformance fixture"}, s.getPrompt)
			s.sdk.RemovePrompts("transient")
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

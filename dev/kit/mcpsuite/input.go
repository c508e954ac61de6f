//lint:file-ignore SA1019 the conformance suite still asks for what MCP 2026-07-28 deprecates.

package mcpsuite

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inputFixtures answer a first call with what they want to know, and a second one, with the answers, with a result (MCP
// 2026-07-28, multi round-trip requests).
func inputFixtures() map[string]mcp.ToolHandler {
	const prefix = "test_input_required_result_"
	return map[string]mcp.ToolHandler{
		prefix + "elicitation":     askName,
		prefix + "sampling":        askModel,
		prefix + "list_roots":      askRoots,
		prefix + "request_state":   askWithState,
		prefix + "tampered_state":  askWithState,
		prefix + "multiple_inputs": askAll,
		prefix + "multi_round":     askTwice,
		prefix + "capabilities":    askWhatIsPossible,
	}
}

func ask(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

func form(message, field string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: askString(field)}
}

// filled returns a field of a form that the user has accepted.
func filled(req *mcp.CallToolRequest, request, field string) (string, bool) {
	answer, ok := req.Params.InputResponses[request].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return "", false
	}
	text, ok := answer.Content[field].(string)
	return text, ok && text != ""
}

func sampled(req *mcp.CallToolRequest, request string) (string, bool) {
	answer, ok := req.Params.InputResponses[request].(*mcp.CreateMessageWithToolsResult)
	if !ok {
		return "", false
	}
	for _, block := range answer.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			return text.Text, true
		}
	}
	return "", false
}

func askName(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if name, ok := filled(req, "user_name", "name"); ok {
		return say("Hello, %s!", name), nil
	}
	return ask("", mcp.InputRequestMap{"user_name": form("What is your name?", "name")}), nil
}

func askModel(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if text, ok := sampled(req, "capital_question"); ok {
		return say("The model says: %s", text), nil
	}
	return ask("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")}), nil
}

func askRoots(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if roots, ok := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult); ok {
		return say("%d roots", len(roots.Roots)), nil
	}
	return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), nil
}

var errState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not what this server gave out"}

func askWithState(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	state, ok := unseal(req.Params.RequestState)
	if !ok {
		return nil, errState
	}
	answer, _ := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
	if state == "asked" && answer != nil && answer.Action == "accept" {
		return say("state-ok"), nil
	}
	schema := json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
	return ask(seal("asked"), mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "Sure?",
		RequestedSchema: schema}}), nil
}

func askAll(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, named := filled(req, "user_name", "name")
	greeting, greeted := sampled(req, "greeting")
	roots, rooted := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult)
	if named && greeted && rooted {
		return say("%s, %s; %d roots", greeting, name, len(roots.Roots)), nil
	}
	return ask(seal("all"), mcp.InputRequestMap{
		"user_name": form("What is your name?", "name"), "greeting": sample("Greet somebody."),
		"client_roots": &mcp.ListRootsParams{},
	}), nil
}

func askTwice(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	state, ok := unseal(req.Params.RequestState)
	if !ok {
		return nil, errState
	}
	if name, ok := strings.CutPrefix(state, "name "); ok {
		if color, ok := filled(req, "step2", "color"); ok {
			return say("%s likes %s", name, color), nil
		}
	}
	if name, ok := filled(req, "step1", "name"); ok && state == "first" {
		return ask(seal("name "+name), mcp.InputRequestMap{"step2": form("Which colour do you like?", "color")}), nil
	}
	return ask(seal("first"), mcp.InputRequestMap{"step1": form("What is your name?", "name")}), nil
}

func askWhatIsPossible(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	requests := mcp.InputRequestMap{}
	if capabilities := req.ClientCapabilities(); capabilities != nil {
		if capabilities.Elicitation != nil {
			requests["user_name"] = form("What is your name?", "name")
		}
		if capabilities.Sampling != nil {
			requests["greeting"] = sample("Greet somebody.")
		}
		if capabilities.RootsV2 != nil {
			requests["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(requests) == 0 || len(req.Params.InputResponses) > 0 {
		return say("nothing left to ask"), nil
	}
	return ask("", requests), nil
}

func askForContext(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if answer, ok := req.Params.InputResponses["user_context"].(*mcp.ElicitResult); ok && answer.Action == "accept" {
		text, _ := answer.Content["context"].(string)
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
			Content: &mcp.TextContent{Text: text}}}}, nil
	}
	return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": form("What is it about?",
		"context")}}, nil
}

var stateKey = []byte(rand.Text())

// seal protects a state that travels through the client.
func seal(state string) string {
	mac := hmac.New(sha256.New, stateKey)
	mac.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil), state...))
}

// unseal returns a state as it was given to seal; none at all is the empty one.
func unseal(sealed string) (string, bool) {
	if sealed == "" {
		return "", true
	}
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(data) < sha256.Size {
		return "", false
	}
	state := string(data[sha256.Size:])
	return state, hmac.Equal([]byte(seal(state)), []byte(sealed))
}

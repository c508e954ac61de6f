package extism

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// callFunction calls the function of a tool of the manifest.
func (s *session) callFunction(ctx context.Context, tool *manifest.Tool, request *abi.Request) (*abi.Response, error) {
	input, err := functionInput(tool.Argument, request.Arguments)
	if err != nil {
		return nil, err
	}
	output, failed, err := s.invoke(ctx, tool.Export, input)
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return failureResponse(request.Method, failed), nil
	}
	response, reason := functionResponse(tool, output)
	if reason != "" {
		return nil, &catalog.GuestError{Plugin: s.call.Plugin,
			Reason: "gave " + reason + " as the result of " + tool.Export}
	}
	return response, nil
}

// functionInput returns the input of a function: all arguments, or the value of one, a string without its quotes.
func functionInput(argument string, arguments json.RawMessage) ([]byte, error) {
	if argument == "" || len(arguments) == 0 {
		return arguments, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &values); err != nil {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: "the arguments are not a JSON object"}
	}
	var text string
	if value := values[argument]; json.Unmarshal(value, &text) != nil {
		return value, nil
	}
	return []byte(text), nil
}

// functionResponse returns the response with the output of a function, or what is wrong with it.
func functionResponse(tool *manifest.Tool, output []byte) (_ *abi.Response, reason string) {
	switch {
	case !utf8.Valid(output):
		return nil, "bytes that are not UTF-8"
	case tool.Result != manifest.ResultJSON:
	case strictjson.Check(output) != nil:
		return nil, "text that is not JSON"
	case strings.HasPrefix(strings.TrimLeft(string(output), " \t\r\n"), "{"):
		return &abi.Response{StructuredContent: output}, ""
	}
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: string(output)}}}, ""
}

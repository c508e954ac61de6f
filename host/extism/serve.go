package extism

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hako-run/hako/host/mcpjson"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// Start runs the guest's language runtime like other hosts of the Extism ABI: _initialize, or else __wasm_call_ctors;
// then hs_init for Haskell.
func (a *Adapter) Start(ctx context.Context, guest *sandbox.Guest) error {
	s := a.session(ctx, guest.Host())
	s.starting = true
	defer func() { s.starting = false }()
	for _, name := range []string{"_initialize", "__wasm_call_ctors"} {
		if !guest.Exports(name) {
			continue
		}
		if _, err := guest.Invoke(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		break
	}
	if guest.Exports("hs_init") {
		if _, err := guest.Invoke(ctx, "hs_init", 0, 0); err != nil {
			return fmt.Errorf("hs_init: %w", err)
		}
	}
	return nil
}

// Serve runs one request. An error that the guest reports becomes a failed tool result, or the Error of other
// responses.
func (a *Adapter) Serve(ctx context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	s := a.session(ctx, guest.Host())
	if request.Method == methodList {
		return s.list(ctx)
	}
	if tool, ok := a.functions[request.Name]; ok && request.Method == abi.CallTool {
		return s.callFunction(ctx, &tool, request)
	}
	export, object, err := a.requestInput(guest, request)
	if err != nil {
		return nil, err
	}
	if !a.exports[export] {
		return &abi.Response{Error: &abi.Error{Code: abi.CodeNotFound,
			Message: "the plugin does not export " + export}}, nil
	}
	input, err := object.encode()
	if err != nil {
		return nil, fmt.Errorf("encode the input of %s: %w", export, err)
	}
	output, failed, err := s.invoke(ctx, export, input)
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return failureResponse(request.Method, failed), nil
	}
	return mcpjson.DecodeResponse(s.call.Plugin, request.Method, output)
}

// failureResponse is the response for an error that the guest reported.
func failureResponse(method string, failed *abi.Error) *abi.Response {
	if method != abi.CallTool {
		return &abi.Response{Error: failed}
	}
	return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: failed.Message}}}
}

// jsonObject is input for a guest.
type jsonObject map[string]any

// encode returns the object as JSON, and nothing for nil.
func (o jsonObject) encode() ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	return json.Marshal(o)
}

// requestInput returns the export for a request and its input.
func (a *Adapter) requestInput(guest *sandbox.Guest, r *abi.Request) (export string, input jsonObject, err error) {
	if a.v1() {
		if r.Method != abi.CallTool {
			return r.Method, nil, nil // not exported
		}
		return exportCall, jsonObject{"params": nameAndArguments(r)}, nil
	}
	input = jsonObject{"context": callContext(guest)}
	switch r.Method {
	case abi.CallTool:
		export, input["request"] = exportCallTool, nameAndArguments(r)
	case abi.GetPrompt:
		export, input["request"] = exportGetPrompt, nameAndArguments(r)
	case abi.ReadResource:
		export, input["request"] = exportReadResource, jsonObject{"uri": r.URI}
	case abi.Complete:
		export, input["request"] = exportComplete, completionRequest(r)
	default:
		return "", nil, fmt.Errorf("method %q is not served by plugins of the Extism ABI", r.Method)
	}
	return export, input, nil
}

func nameAndArguments(r *abi.Request) jsonObject {
	request := jsonObject{"name": r.Name}
	if len(r.Arguments) > 0 {
		request["arguments"] = r.Arguments
	}
	return request
}

// completionRequest is the request to complete an argument. Its reference types have no prefix "ref/".
func completionRequest(r *abi.Request) jsonObject {
	ref := jsonObject{"type": strings.TrimPrefix(r.Ref.Type, "ref/")}
	if r.Ref.Name != "" {
		ref["name"] = r.Ref.Name
	}
	if r.Ref.URI != "" {
		ref["uri"] = r.Ref.URI
	}
	request := jsonObject{"ref": ref, "argument": jsonObject{"name": r.Argument.Name, "value": r.Argument.Value}}
	if len(r.Argument.Resolved) > 0 {
		request["context"] = jsonObject{"arguments": r.Argument.Resolved}
	}
	return request
}

// requests counts the requests of this process, for their IDs.
var requests atomic.Uint64

// callContext is the context in every request of the second family. Its _meta is required, even if empty; a
// progressToken in it asks for progress.
func callContext(guest *sandbox.Guest) jsonObject {
	id := strconv.FormatUint(requests.Add(1), 10)
	meta := jsonObject{}
	if guest.WantsProgress() {
		meta["progressToken"] = id
	}
	return jsonObject{"id": id, "_meta": meta}
}

// maxFailure bounds the text of an error that a guest reports, in bytes.
const maxFailure = 8 << 10

// invoke calls an export with input. It returns a copy of the output, or the error that the guest reported.
func (s *session) invoke(
	ctx context.Context, export string, input []byte,
) (output []byte, failed *abi.Error, err error) {
	if s.used {
		s.kernel.reset()
	}
	s.used = true
	if len(input) > 0 {
		if err := s.kernel.reserveBlock(uint64(len(input))); err != nil {
			return nil, nil, err
		}
		s.kernel.input = span{s.kernel.write(input), uint64(len(input))}
	}
	results, err := s.guest.Invoke(ctx, export)
	if err != nil {
		return nil, nil, err
	}
	if text := s.kernel.failure.data; len(text) > 0 {
		text = text[:min(len(text), maxFailure)]
		return nil, &abi.Error{Code: abi.CodeInternal, Message: strings.ToValidUTF8(string(text), "\uFFFD")}, nil
	}
	if len(results) > 0 && int32(results[0]) != 0 {
		message := fmt.Sprintf("%s failed with code %d and no message", export, int32(results[0]))
		return nil, &abi.Error{Code: abi.CodeInternal, Message: message}, nil
	}
	if int64(len(s.kernel.output.data)) > s.guest.Limits().Output {
		return nil, nil, s.guest.OutputLimitError()
	}
	if err := s.guest.ReserveResponse(s.kernel.output.data); err != nil {
		return nil, nil, err
	}
	return append([]byte(nil), s.kernel.output.data...), nil, nil
}

package extism

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// Start starts the guest's language runtime, as hosts of the Extism ABI do: _initialize, or else __wasm_call_ctors; then hs_init for
// Haskell.
func (a *Adapter) Start(ctx context.Context, guest *sandbox.Guest) error {
	s := a.session(ctx, guest.Call())
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

// Serve answers one request. What the guest itself calls an error is a tool's failure, or the Error of another response.
func (a *Adapter) Serve(ctx context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	s := a.session(ctx, guest.Call())
	if request.Method == methodList {
		return s.list(ctx)
	}
	export, input, err := a.input(guest, request)
	if err != nil {
		return nil, err
	}
	if !a.exports[export] {
		return &abi.Response{Error: &abi.Error{Code: abi.CodeNotFound, Message: "the plugin does not export " + export}}, nil
	}
	output, failed, err := s.invoke(ctx, export, input)
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return failure(request.Method, failed), nil
	}
	return parse(s.call.Plugin, request.Method, output)
}

// failure is the response that tells of a guest's own error.
func failure(method string, failed *abi.Error) *abi.Response {
	if method != abi.CallTool {
		return &abi.Response{Error: failed}
	}
	return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: failed.Message}}}
}

// object is JSON on its way to a guest.
type object map[string]any

// input returns the export that serves a request, and what it takes.
func (a *Adapter) input(guest *sandbox.Guest, r *abi.Request) (export string, input object, err error) {
	if a.v1() {
		if r.Method != abi.CallTool {
			return r.Method, nil, nil // not exported
		}
		return exportCall, object{"params": named(r)}, nil
	}
	input = object{"context": callContext(guest)}
	switch r.Method {
	case abi.CallTool:
		export, input["request"] = exportCallTool, named(r)
	case abi.GetPrompt:
		export, input["request"] = exportGetPrompt, named(r)
	case abi.ReadResource:
		export, input["request"] = exportReadResource, object{"uri": r.URI}
	case abi.Complete:
		export, input["request"] = exportComplete, completion(r)
	default:
		return "", nil, fmt.Errorf("method %q is not served by plugins of the Extism ABI", r.Method)
	}
	return export, input, nil
}

func named(r *abi.Request) object {
	request := object{"name": r.Name}
	if len(r.Arguments) > 0 {
		request["arguments"] = r.Arguments
	}
	return request
}

// completion is the request to complete an argument. The kinds of references have no "ref/" there.
func completion(r *abi.Request) object {
	ref := object{"type": strings.TrimPrefix(r.Ref.Type, "ref/")}
	if r.Ref.Name != "" {
		ref["name"] = r.Ref.Name
	}
	if r.Ref.URI != "" {
		ref["uri"] = r.Ref.URI
	}
	request := object{"ref": ref, "argument": object{"name": r.Argument.Name, "value": r.Argument.Value}}
	if len(r.Argument.Resolved) > 0 {
		request["context"] = object{"arguments": r.Argument.Resolved}
	}
	return request
}

// requests numbers the requests of this process.
var requests atomic.Uint64

// callContext is the context that the second family gets with every request. Its _meta must be there, even if empty; a token in it
// asks for progress.
func callContext(guest *sandbox.Guest) object {
	id := strconv.FormatUint(requests.Add(1), 10)
	meta := object{}
	if guest.WantsProgress() {
		meta["progressToken"] = id
	}
	return object{"id": id, "_meta": meta}
}

// maxFailure bounds the text of a guest's error, in bytes.
const maxFailure = 8 << 10

// invoke calls an export with input as JSON and returns its output, or what the guest calls an error. Both are copies.
func (s *session) invoke(ctx context.Context, export string, input object) (output []byte, failed *abi.Error, err error) {
	if s.used {
		s.kernel.reset()
	}
	s.used = true
	if input != nil {
		data, err := json.Marshal(input)
		if err != nil {
			return nil, nil, fmt.Errorf("encode the input of %s: %w", export, err)
		}
		if err := s.kernel.room(uint64(len(data))); err != nil {
			return nil, nil, err
		}
		s.kernel.input = span{s.kernel.write(data), uint64(len(data))}
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
		return nil, &abi.Error{Code: abi.CodeInternal, Message: fmt.Sprintf("%s failed with code %d and said no more", export, int32(results[0]))}, nil
	}
	if int64(len(s.kernel.output.data)) > s.guest.Limits().Output {
		return nil, nil, s.guest.Passed(sandbox.LimitOutput)
	}
	if err := s.guest.HoldAnswer(s.kernel.output.data); err != nil {
		return nil, nil, err
	}
	return append([]byte(nil), s.kernel.output.data...), nil, nil
}

package extism

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpjson"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// methodList is the method of requests that List makes.
const methodList = "extism/list"

// List asks a plugin with an Adapter for everything that it offers. The result is input for Complete and stays valid
// while plugin and configuration are unchanged. List returns the errors of sandbox.Plugin.Call, and a
// *catalog.GuestError if the guest reports an error.
func List(ctx context.Context, plugin *sandbox.Plugin) ([]byte, error) {
	response, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: methodList}})
	if err != nil {
		return nil, fmt.Errorf("ask for its tools: %w", err)
	}
	return response.StructuredContent, nil
}

// list calls all list exports of the guest in one call.
func (s *session) list(ctx context.Context) (*abi.Response, error) {
	exports, input := []string{exportDescribe}, jsonObject(nil)
	if !s.adapter.v1() {
		exports = []string{exportListTools, exportListPrompts, exportListResources, exportListTemplates}
		input = jsonObject{"context": callContext(s.guest)}
	}
	var all mcpjson.Listing
	encoded, err := input.encode()
	if err != nil {
		return nil, fmt.Errorf("encode the context of a request: %w", err)
	}
	for _, export := range exports {
		if !s.adapter.exports[export] {
			continue
		}
		output, failed, err := s.invoke(ctx, export, encoded)
		switch {
		case err != nil:
			return nil, err
		case failed != nil:
			return nil, &catalog.GuestError{Plugin: s.call.Plugin,
				Reason: "failed in " + export + ": " + failed.Message, Err: failed}
		}
		if err := strictjson.Unmarshal(output, &all); err != nil {
			reason := "returned unexpected JSON for " + export + ": " + err.Error()
			return nil, &catalog.GuestError{Plugin: s.call.Plugin, Reason: reason, Err: err}
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the listing: %w", err)
	}
	return &abi.Response{StructuredContent: data}, nil
}

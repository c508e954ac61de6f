package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpjson"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// The interfaces of wasmcp, https://github.com/wasmcp/wasmcp, for one version of MCP.
const (
	wasmcpPackages  = "wasmcp:mcp-"
	wasmcpPackage   = "wasmcp:mcp-v20251125/"
	protocolVersion = "2025-11-25"
)

// Functions of the interfaces tools, resources, prompts and completions.
const (
	listTools     = "list-tools"
	callTool      = "call-tool"
	listResources = "list-resources"
	listTemplates = "list-resource-templates"
	readResource  = "read-resource"
	listPrompts   = "list-prompts"
	getPrompt     = "get-prompt"
	complete      = "complete"
)

// listed are the functions of each interface that hako calls.
var listed = map[string][]string{
	"tools":       {listTools, callTool},
	"resources":   {listResources, listTemplates, readResource},
	"prompts":     {listPrompts, getPrompt},
	"completions": {complete},
}

// isListed reports whether hako calls the functions of an interface to list and run what a component implements.
func isListed(iface string) bool { return strings.HasPrefix(iface, wasmcpPackages) }

// listedFunctions returns the functions of wasmcp's interfaces that a component exports, by their names. All have two
// parameters, the context and the request, and a result with an error.
func listedFunctions(c *component.Component) (map[string]*Function, error) {
	found := map[string]*Function{}
	for _, f := range Functions(c) {
		iface, name, _ := strings.Cut(f.Export, "#")
		if !isListed(iface) {
			continue
		}
		short, ok := strings.CutPrefix(iface, wasmcpPackage)
		if !ok {
			return nil, fmt.Errorf(
				"the component exports %s, and hako knows %s*: build it with that version of wasmcp's WIT",
				iface, wasmcpPackage)
		}
		short, _, _ = strings.Cut(short, "@")
		if !slices.Contains(listed[short], name) {
			continue
		}
		if len(f.Type.Params) != 2 || f.Type.Result == nil || f.Type.Result.Kind != component.KindResult ||
			f.Type.Result.Elem == nil {
			return nil, fmt.Errorf("the component exports %s with the type %s, which is not that of wasmcp", f.Export,
				f.Type)
		}
		found[name] = &f
	}
	return found, nil
}

// Lists reports whether the component lists its tools, resources and prompts itself, so that it must be asked with
// List.
func (a *Adapter) Lists() bool { return len(a.listed) > 0 }

// methodList is the method of requests that List makes.
const methodList = "component/list"

// List asks a plugin whose Adapter Lists for everything that it offers. The result is input for Adapter.Complete and
// stays valid while the plugin and its configuration are unchanged.
func List(ctx context.Context, plugin *sandbox.Plugin) ([]byte, error) {
	response, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: methodList}})
	if err != nil {
		return nil, fmt.Errorf("ask for its tools: %w", err)
	}
	return response.StructuredContent, nil
}

// completeListed adds what the component listed to the manifest. The manifest's tools select and describe listed ones.
func (a *Adapter) completeListed(listing []byte) (m *manifest.Manifest, omitted []string, err error) {
	withoutTools := *a.manifest
	withoutTools.Tools = nil
	m, omitted, err = mcpjson.Complete(&withoutTools, listing)
	if err != nil || len(a.manifest.Tools) == 0 {
		return m, omitted, err
	}
	tools := make([]manifest.Tool, len(a.manifest.Tools))
	for i, t := range a.manifest.Tools {
		at := slices.IndexFunc(m.Tools, func(l manifest.Tool) bool { return l.Name == a.listedName(t.Name) })
		if at < 0 {
			return nil, nil, fmt.Errorf("tools[%d]: the component lists no tool %s", i, a.listedName(t.Name))
		}
		tools[i] = override(m.Tools[at], t)
	}
	m.Tools = tools
	if err := m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("what the component lists cannot be offered: %w", err)
	}
	return m, omitted, nil
}

// override returns a tool of the manifest with what it does not say taken from the listed one.
func override(l, t manifest.Tool) manifest.Tool {
	if len(t.Title) == 0 {
		t.Title = l.Title
	}
	if len(t.Description) == 0 {
		t.Description = l.Description
	}
	if t.InputSchema == nil {
		t.InputSchema = l.InputSchema
	}
	if t.OutputSchema == nil {
		t.OutputSchema = l.OutputSchema
	}
	if t.Annotations == (manifest.Annotations{}) {
		t.Annotations = l.Annotations
	}
	return t
}

// listedName returns the name under which the component lists a tool.
func (a *Adapter) listedName(tool string) string {
	for i := range a.manifest.Tools {
		if t := &a.manifest.Tools[i]; t.Name == tool && t.Export != "" {
			return t.Export
		}
	}
	return tool
}

// serveListed runs one request to a component that lists what it offers.
func (a *Adapter) serveListed(ctx context.Context, g guest, request *abi.Request) (*abi.Response, error) {
	name, fields := "", recordFields{}
	if len(request.Arguments) > 0 {
		fields["arguments"] = string(request.Arguments)
	}
	switch request.Method {
	case methodList:
		return a.list(ctx, g)
	case abi.CallTool:
		name, fields["name"] = callTool, a.listedName(request.Name)
	case abi.GetPrompt:
		name, fields["name"] = getPrompt, request.Name
	case abi.ReadResource:
		name, fields["uri"] = readResource, request.URI
	case abi.Complete:
		name, fields = complete, completion(request)
	}
	f := a.listed[name]
	switch {
	case f == nil && request.Method == abi.Complete: // MCP has no error for it
		return &abi.Response{}, nil
	case f == nil:
		return notFound("the component does not serve " + request.Method), nil
	}
	answer, failed, err := f.ask(ctx, g, fields)
	switch {
	case failed != nil && request.Method == abi.Complete && failed.Code == abi.CodeNotFound:
		return &abi.Response{}, nil
	case err != nil:
		return nil, err
	case failed != nil && request.Method == abi.CallTool && failed.Code != abi.CodeNotFound:
		return toolError(failed.Message), nil
	case failed != nil:
		return &abi.Response{Error: failed}, nil
	}
	if request.Method == abi.Complete {
		answer = jsonObject{"completion": answer}
	}
	for _, contents := range elements(answer["contents"]) {
		if contents["uri"] == "" { // templates of wasmcp leave it out
			contents["uri"] = request.URI
		}
	}
	data, err := marshal(g, answer)
	if err != nil {
		return nil, err
	}
	return mcpjson.DecodeResponse(g.Host().Plugin, request.Method, data)
}

// completion returns the fields of a request for completions.
func completion(request *abi.Request) recordFields {
	fields := recordFields{}
	if a := request.Argument; a != nil {
		fields["argument"] = recordFields{"name": a.Name, "value": a.Value}
		if len(a.Resolved) > 0 {
			resolved, _ := json.Marshal(a.Resolved) // texts only
			fields["context"] = recordFields{"arguments": string(resolved)}
		}
	}
	if ref := request.Ref; ref != nil && ref.Type == "ref/prompt" {
		fields["ref"] = variantCase{"prompt", recordFields{"name": ref.Name}}
	} else if ref != nil {
		fields["ref"] = variantCase{"resource-template", ref.URI}
	}
	return fields
}

func elements(list any) []jsonObject {
	var objects []jsonObject
	values, _ := list.([]any)
	for _, value := range values {
		if object, ok := value.(jsonObject); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

func marshal(g guest, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, &catalog.GuestError{Plugin: g.Host().Plugin,
			Reason: "returned a value that has no JSON form", Err: err}
	}
	if int64(len(data)) > g.Limits().Output {
		return nil, g.OutputLimitError()
	}
	return data, g.ReserveResponse(data)
}

// maxPages bounds the pages of a list.
const maxPages = 100

// list calls all list functions of the component.
func (a *Adapter) list(ctx context.Context, g guest) (*abi.Response, error) {
	var all mcpjson.Listing
	for _, name := range []string{listTools, listPrompts, listResources, listTemplates} {
		if f := a.listed[name]; f != nil {
			if err := f.list(ctx, g, &all); err != nil {
				return nil, err
			}
		}
	}
	data, err := marshal(g, all)
	return &abi.Response{StructuredContent: data}, err
}

// list adds the pages of one list.
func (f *Function) list(ctx context.Context, g guest, all *mcpjson.Listing) error {
	broken := func(reason string, err error) error {
		return &catalog.GuestError{Plugin: g.Host().Plugin, Reason: "failed in " + f.Export + ": " + reason, Err: err}
	}
	fields := recordFields{}
	for range maxPages {
		answer, failed, err := f.ask(ctx, g, fields)
		if err != nil {
			return err
		}
		if failed != nil {
			return broken(failed.Message, failed)
		}
		data, err := marshal(g, answer)
		if err != nil {
			return err
		}
		var page mcpjson.Listing
		if err := strictjson.Unmarshal(data, &page); err != nil {
			return broken(err.Error(), err)
		}
		all.Tools = append(all.Tools, page.Tools...)
		all.Prompts = append(all.Prompts, page.Prompts...)
		all.Resources = append(all.Resources, page.Resources...)
		all.ResourceTemplates = append(all.ResourceTemplates, page.ResourceTemplates...)
		next, _ := answer["nextCursor"].(string)
		if next == "" {
			return nil
		}
		fields["cursor"] = next
	}
	err := fmt.Errorf("the list has more than %d pages", maxPages)
	return broken(err.Error(), err)
}

// ask calls a function of wasmcp with a request that has these fields. It returns the answer in MCP's form, or the
// error that the component reported.
func (f *Function) ask(ctx context.Context, g guest, fields recordFields) (jsonObject, *abi.Error, error) {
	args := []any{
		fill(f.Type.Params[0].Type, recordFields{"protocol-version": protocolVersion}),
		fill(f.Type.Params[1].Type, fields),
	}
	value, err := g.Call(ctx, f.Export, args)
	if err != nil {
		return nil, nil, err
	}
	result := value.(component.Case)
	form := mcpForm{limit: g.Limits().Output}
	t, value := f.Type.Result.Elem, result.Value
	if result.Number == 1 {
		return nil, form.failure(f, result.Value), nil
	}
	if t.Kind == component.KindOption {
		c := value.(component.Case)
		if c.Number == 0 {
			return nil, fields.unknown(), nil
		}
		t, value = t.Elem, c.Value
	}
	answer, err := form.of(t, value)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, nil, g.OutputLimitError()
	case err != nil:
		return nil, nil, &catalog.GuestError{Plugin: g.Host().Plugin,
			Reason: "returned an invalid response to " + f.Export + ": " + err.Error(), Err: err}
	}
	object, ok := answer.(jsonObject)
	if !ok {
		return nil, nil, &catalog.GuestError{Plugin: g.Host().Plugin,
			Reason: "returned a response to " + f.Export + " that is not a record"}
	}
	return object, nil, nil
}

// Package pdk is the plugin development kit for Go: it registers handlers for the tools, resources and prompts of a
// hako plugin.
//
// A plugin registers its handlers in init and has an empty main:
//
//	type args struct {
//		Name string `json:"name"`
//	}
//
//	func init() {
//		pdk.HandleTool("greet", func(ctx context.Context, in args) (string, error) {
//			return "Hello, " + in.Name, nil
//		})
//	}
//
//	func main() {}
//
// Build it with the standard compiler: GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared. The manifest beside it
// declares tools and permissions. Handlers are ordinary functions: call them from go test without Wasm, or by name with
// package pdktest. An instance serves one call at a time, so handlers need no locks. Global state does not survive a
// call.
package pdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/wire"
	"github.com/hako-run/hako/pdk/locale"
)

// Types of package abi for handlers.
type (
	Content          = abi.Content
	ResourceContents = abi.ResourceContents
	PromptMessage    = abi.PromptMessage
)

// Prompt is the result of a prompt handler.
type Prompt struct {
	Description string
	Messages    []PromptMessage
}

// A Completer proposes values for an argument that starts with value; resolved has the arguments already given.
type Completer func(ctx context.Context, value string, resolved map[string]string) ([]string, error)

var (
	tools      = map[string]func(context.Context, json.RawMessage) (*Result, error){}
	resources  = map[string]func(context.Context, string) ([]ResourceContents, error){}
	templates  = map[string]func(context.Context, string, map[string]string) ([]ResourceContents, error){}
	prompts    = map[string]func(context.Context, map[string]string) (*Prompt, error){}
	completers = map[string]Completer{}
)

// HandleTool registers the handler of the tool called name in the manifest. The arguments, which match the input
// schema, are decoded into In with encoding/json. The result may be a *Result, a string (one text block) or any other
// value, which becomes the structured content. A returned error is a tool error: its text goes to the model, in the
// caller's language if it is a [locale.Error].
//
// HandleTool panics if name already has a handler.
func HandleTool[In, Out any](name string, handle func(context.Context, In) (Out, error)) {
	warm[In, Out]()
	decoder := wire.NewArgumentDecoder(reflect.TypeFor[In]())
	register(tools, "tool", name, func(ctx context.Context, arguments json.RawMessage) (*Result, error) {
		var in In
		if len(arguments) > 0 {
			if err := decoder.Decode(arguments, &in); err != nil {
				return nil, fmt.Errorf("arguments of %s: %w", name, err)
			}
		}
		out, err := handle(ctx, in)
		if err != nil {
			return nil, err
		}
		return resultOf(out), nil
	})
}

// HandleResource registers the handler of the resource with this URI in the manifest.
func HandleResource(uri string, handle func(ctx context.Context, uri string) ([]ResourceContents, error)) {
	register(resources, "resource", uri, handle)
}

// HandleResourceTemplate registers the handler of a resource template. It gets the URI and the values of the template's
// variables.
func HandleResourceTemplate(uriTemplate string,
	handle func(ctx context.Context, uri string, variables map[string]string) ([]ResourceContents, error)) {
	register(templates, "resource template", uriTemplate, handle)
}

// HandlePrompt registers the handler of a prompt.
func HandlePrompt(name string, handle func(ctx context.Context, arguments map[string]string) (*Prompt, error)) {
	register(prompts, "prompt", name, handle)
}

// CompletePrompt registers the completer of an argument of a prompt.
func CompletePrompt(prompt, argument string, complete Completer) {
	register(completers, "completer", "ref/prompt "+prompt+" "+argument, complete)
}

// CompleteResource registers the completer of a variable of a resource template.
func CompleteResource(uriTemplate, variable string, complete Completer) {
	register(completers, "completer", "ref/resource "+uriTemplate+" "+variable, complete)
}

func register[H any](table map[string]H, kind, name string, handle H) {
	if _, dup := table[name]; dup {
		panic("pdk: two handlers for " + kind + " " + name)
	}
	table[name] = handle
}

// Handle serves a request with the registered handlers, like the entry point. Binary parts are in the Data fields of
// the response. A panic of a handler becomes a tool error, and its stack is logged.
func Handle(ctx context.Context, request *abi.Request) (response *abi.Response) {
	ctx = NewContext(ctx, request)
	defer func() {
		if cause := recover(); cause != nil {
			Log(ctx).Error(fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
			response = errorResponse(request, fmt.Errorf("%s stopped unexpectedly: %v", request.Name, cause))
		}
	}()
	response, err := serve(ctx, request)
	if err != nil {
		return errorResponse(request, err)
	}
	return response
}

func serve(ctx context.Context, request *abi.Request) (*abi.Response, error) {
	switch request.Method {
	case abi.CallTool:
		handle, ok := tools[request.Name]
		if !ok {
			return nil, notFound("tool", request.Name)
		}
		result, err := handle(ctx, request.Arguments)
		if err != nil {
			return nil, err
		}
		return result.response()
	case abi.ReadResource:
		contents, err := readResource(ctx, request)
		return &abi.Response{Contents: contents}, err
	case abi.GetPrompt:
		return getPrompt(ctx, request)
	case abi.Complete:
		return complete(ctx, request)
	case abi.ListHandlers:
		return &abi.Response{Handlers: &abi.Handlers{
			Tools: names(tools), Resources: names(resources), ResourceTemplates: names(templates),
			Prompts: names(prompts),
		}}, nil
	}
	return nil, notFound("method", request.Method)
}

func names[H any](table map[string]H) []string { return slices.Sorted(maps.Keys(table)) }

func readResource(ctx context.Context, request *abi.Request) ([]ResourceContents, error) {
	if handle, ok := templates[request.Template]; ok {
		return handle(ctx, request.URI, request.Variables)
	}
	if handle, ok := resources[request.URI]; ok {
		return handle(ctx, request.URI)
	}
	return nil, notFound("resource", request.URI)
}

func getPrompt(ctx context.Context, request *abi.Request) (*abi.Response, error) {
	handle, ok := prompts[request.Name]
	if !ok {
		return nil, notFound("prompt", request.Name)
	}
	var arguments map[string]string
	if len(request.Arguments) > 0 {
		if err := json.Unmarshal(request.Arguments, &arguments); err != nil {
			return nil, &abi.Error{Code: abi.CodeInvalid, Message: "arguments of " + request.Name + ": " + err.Error()}
		}
	}
	prompt, err := handle(ctx, arguments)
	if err != nil {
		return nil, err
	}
	return &abi.Response{Description: prompt.Description, Messages: prompt.Messages}, nil
}

// maxCompletions is MCP's maximum.
const maxCompletions = 100

func complete(ctx context.Context, request *abi.Request) (*abi.Response, error) {
	if request.Ref == nil || request.Argument == nil {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: "a completion needs a ref and an argument"}
	}
	handle, ok := completers[request.Ref.Type+" "+request.Ref.Name+request.Ref.URI+" "+request.Argument.Name]
	if !ok {
		return &abi.Response{Completion: &abi.Completion{Values: []string{}}}, nil
	}
	values, err := handle(ctx, request.Argument.Value, request.Argument.Resolved)
	if err != nil {
		return nil, err
	}
	total := len(values)
	values = append([]string{}, values[:min(total, maxCompletions)]...)
	return &abi.Response{Completion: &abi.Completion{Values: values, Total: total, HasMore: total > len(values)}}, nil
}

func notFound(kind, name string) error {
	return &abi.Error{Code: abi.CodeNotFound, Message: "this plugin has no handler for the " + kind + " " + name}
}

// errorResponse returns the response for an error. That of a tool is a result for the model.
func errorResponse(request *abi.Request, err error) *abi.Response {
	var wire *abi.Error
	ok := errors.As(err, &wire)
	text := locale.In(err, request.Locale)
	if request.Method == abi.CallTool && (!ok || wire.Code != abi.CodeNotFound) {
		return &abi.Response{IsError: true, Content: []Content{{Type: abi.Text, Text: text}}}
	}
	if !ok {
		wire = &abi.Error{Code: abi.CodeInternal, Message: text}
	}
	return &abi.Response{Error: wire}
}

package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

var _ sandbox.Adapter = (*Adapter)(nil)

// guest is a *sandbox.Guest.
type guest interface {
	Host() *broker.Call
	Call(ctx context.Context, export string, args []any) (any, error)
	Limits() manifest.Limits
	OutputLimitError() *limit.Error
	Reserve(bytes int64) error
	ReserveResponse(data []byte) error
}

// Start does nothing: instantiation has run the component's start functions.
func (a *Adapter) Start(context.Context, *sandbox.Guest) error { return nil }

// Serve runs one request. The error of a function's result becomes a failed tool result.
func (a *Adapter) Serve(ctx context.Context, g *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	return a.serve(ctx, g, request)
}

func (a *Adapter) serve(ctx context.Context, g guest, request *abi.Request) (*abi.Response, error) {
	if a.Lists() {
		return a.serveListed(ctx, g, request)
	}
	for i := range a.functions {
		if f := &a.functions[i]; request.Method == abi.CallTool && f.Name == request.Name {
			return f.call(ctx, g, request)
		}
	}
	return notFound("the component has no function for " + request.Method + " " + request.Name), nil
}

func notFound(message string) *abi.Response {
	return &abi.Response{Error: &abi.Error{Code: abi.CodeNotFound, Message: message}}
}

// elementBytes is the host memory that an element of a list takes, while the list grows.
const elementBytes = 64

// call calls the function as a tool.
func (f *Function) call(ctx context.Context, g guest, request *abi.Request) (*abi.Response, error) {
	elements := int64(bytes.Count(request.Arguments, []byte{','}))
	if err := g.Reserve(2*int64(len(request.Arguments)) + elementBytes*elements); err != nil {
		return nil, err
	}
	args, err := decodeArguments(f.Type, request.Arguments)
	if err != nil {
		return toolError(fmt.Sprintf("the arguments of %s are not valid: %v. Correct them and call it again",
			request.Name, err)), nil
	}
	value, err := g.Call(ctx, f.Export, args)
	if err != nil {
		return nil, err
	}
	return f.response(g, value)
}

func toolError(text string) *abi.Response {
	return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: text}}}
}

// response converts the result of the function: a text stays one, other values are structured content. The error of a
// result is a tool error.
func (f *Function) response(g guest, value any) (*abi.Response, error) {
	t := f.Type.Result
	if t != nil && t.Kind == component.KindResult {
		c := value.(component.Case)
		if value, t = c.Value, t.Elem; c.Number == 1 {
			return f.failure(g, c.Value)
		}
	}
	switch {
	case t == nil:
		return &abi.Response{}, nil
	case t.Kind == component.KindString:
		text, err := bounded(g, value.(string))
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: text}}}, err
	case isObject(t):
		data, err := encode(g, "", t, value)
		return &abi.Response{StructuredContent: data}, err
	}
	data, err := encode(g, resultKey, t, value)
	return &abi.Response{StructuredContent: data}, err
}

// failure is the tool error for the error of a result: its text, or its JSON.
func (f *Function) failure(g guest, value any) (*abi.Response, error) {
	switch t := f.Type.Result.Err; {
	case t == nil:
		return toolError(f.Export + " failed"), nil
	case t.Kind == component.KindString:
		text, err := bounded(g, value.(string))
		return toolError(text), err
	default:
		data, err := encode(g, "", t, value)
		return toolError(string(data)), err
	}
}

// bounded checks a text against the output limit.
func bounded(g guest, text string) (string, error) {
	if int64(len(text)) > g.Limits().Output {
		return "", g.OutputLimitError()
	}
	return text, nil
}

// encode encodes a value as JSON within the output limit: alone, or as the property key of an object.
func encode(g guest, key string, t *component.Type, value any) ([]byte, error) {
	e := encoder{limit: int(g.Limits().Output)}
	var err error
	if key == "" {
		err = e.value(t, value)
	} else {
		err = e.single(key, t, value)
	}
	if errors.Is(err, errTooLarge) || err == nil && len(e.out) > e.limit {
		return nil, g.OutputLimitError()
	}
	if err != nil {
		return nil, err
	}
	return e.out, g.ReserveResponse(e.out)
}

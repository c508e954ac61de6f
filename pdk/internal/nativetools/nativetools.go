// Package nativetools passes calls of other tools to the test that called a handler, in place of a host.
package nativetools

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
)

// Tools stands in for the other tools of a host.
type Tools interface {
	Call(call *abi.ToolCall) *abi.ToolEnd
	List(query *abi.ToolQuery) *abi.ToolList
}

type key struct{}

// With returns a context whose calls go to tools.
func With(ctx context.Context, tools Tools) context.Context {
	return context.WithValue(ctx, key{}, tools)
}

// FromContext returns the tools of ctx, or nil.
func FromContext(ctx context.Context) Tools {
	tools, _ := ctx.Value(key{}).(Tools)
	return tools
}

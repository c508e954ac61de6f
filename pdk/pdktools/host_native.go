//go:build !wasip1

package pdktools

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativetools"
)

// Outside of Wasm a test answers for the tools.

var errNoTools = &abi.Error{Code: abi.CodeNotGranted,
	Message: "outside of a host there are no other tools: name them in pdktest.Options.Tools"}

func hostStart(ctx context.Context, call *abi.ToolCall) (wait func() (*abi.ToolEnd, error), err error) {
	tools := nativetools.FromContext(ctx)
	if tools == nil {
		return nil, errNoTools
	}
	end := tools.Call(call)
	return func() (*abi.ToolEnd, error) { return end, nil }, nil
}

func hostList(ctx context.Context, query *abi.ToolQuery) (*abi.ToolList, error) {
	tools := nativetools.FromContext(ctx)
	if tools == nil {
		return nil, errNoTools
	}
	return tools.List(query), nil
}

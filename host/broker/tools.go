package broker

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
)

// Tools calls other tools for a guest, as the caller of the guest's own call. It is safe for concurrent use.
type Tools interface {
	// Call makes one call and returns how it ended, without Handle, and the steps that it took. It ends soon after ctx.
	// granted reports whether the guest may call a tool.
	Call(ctx context.Context, request *abi.ToolCall, granted Granted) (end *abi.ToolEnd, steps int64)
	// List returns the tools that granted allows and that the caller may use.
	List(query *abi.ToolQuery, granted Granted) *abi.ToolList
}

// Granted reports whether a plugin may call a tool. plugin is the tool's source, tool its name in the catalog.
type Granted func(plugin, tool string) bool

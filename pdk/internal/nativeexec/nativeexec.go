// Package nativeexec takes the commands of handlers to the test that called them, where there is no host.
package nativeexec

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
)

// Runner plays the host for one command: it passes what the command writes to output and returns how it ended. An *abi.Error means
// that the host does not start it.
type Runner func(request *abi.ExecRequest, output func(stream int, data []byte)) (*abi.ExecExit, error)

type key struct{}

// With returns a context whose commands go to runner.
func With(ctx context.Context, runner Runner) context.Context {
	return context.WithValue(ctx, key{}, runner)
}

// FromContext returns the runner of ctx, or nil.
func FromContext(ctx context.Context) Runner {
	runner, _ := ctx.Value(key{}).(Runner)
	return runner
}

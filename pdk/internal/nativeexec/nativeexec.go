// Package nativeexec passes the commands of handlers to the test that called them, in place of a host.
package nativeexec

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
)

// Runner runs a command in place of the host: it passes the output of the command to output and returns how it ended.
// An *abi.Error means that the command is not started.
type Runner func(request *abi.ExecRequest, output func(stream int, data []byte)) (*abi.ExecExit, error)

type key struct{}

// With returns a context whose commands are run by runner.
func With(ctx context.Context, runner Runner) context.Context {
	return context.WithValue(ctx, key{}, runner)
}

// FromContext returns the runner of ctx, or nil.
func FromContext(ctx context.Context) Runner {
	runner, _ := ctx.Value(key{}).(Runner)
	return runner
}

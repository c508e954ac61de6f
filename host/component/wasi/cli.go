package wasi

import (
	"context"
	"fmt"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// cli is wasi:cli. Standard input is empty, standard output and error are log records, and there is no terminal.
func (h *host) cli() []broker.Interface {
	noTerminal := func0(func(caller) any { return component.None })
	return []broker.Interface{
		wasi("cli/environment", functions{
			"get-environment": func0(h.environment),
			"get-arguments":   func0(h.arguments),
			"initial-cwd":     func0(func(caller) any { return component.None }),
		}),
		wasi("cli/exit", functions{
			"exit":           func1(func(_ caller, status component.Case) any { panic(&ExitError{status.Number}) }),
			"exit-with-code": func1(func(_ caller, code uint64) any { panic(&ExitError{uint32(code)}) }),
		}),
		wasi("cli/stdin", functions{"get-stdin": func0(func(caller) any { return emptyInput{} })}),
		wasi("cli/stdout", functions{"get-stdout": func0(func(caller) any { return &logOutput{h, abi.LogInfo} })}),
		wasi("cli/stderr", functions{"get-stderr": func0(func(caller) any { return &logOutput{h, abi.LogWarn} })}),
		wasi("cli/terminal-input", functions{}),
		wasi("cli/terminal-output", functions{}),
		wasi("cli/terminal-stdin", functions{"get-terminal-stdin": noTerminal}),
		wasi("cli/terminal-stdout", functions{"get-terminal-stdout": noTerminal}),
		wasi("cli/terminal-stderr", functions{"get-terminal-stderr": noTerminal}),
	}
}

func (h *host) environment(caller) any {
	list := make([]any, len(h.Environment))
	for i, variable := range h.Environment {
		list[i] = []any{variable[0], variable[1]}
	}
	return list
}

// arguments returns none: a plugin has no command line.
func (h *host) arguments(caller) any { return []any{} }

// texts returns a list<string>.
func texts(list []string) []any {
	values := make([]any, len(list))
	for i, text := range list {
		values[i] = text
	}
	return values
}

// ExitError ends the call of a component that exits.
type ExitError struct{ Code uint32 }

func (e *ExitError) Error() string {
	return fmt.Sprintf("it exited with code %d instead of returning a result", e.Code)
}

// emptyInput is standard input.
type emptyInput struct{ always }

func (emptyInput) read(caller, int) ([]byte, error) { return nil, errClosed }

// logOutput is standard output or error. Each line becomes a log record of the running call.
type logOutput struct {
	host  *host
	level abi.LogLevel
}

func (*logOutput) check(caller) error { return nil }

func (o *logOutput) write(c caller, p []byte) error {
	o.host.Print(c.ctx, o.level, p)
	return nil
}

func (*logOutput) flush(caller) error { return nil }

// Lasting implements component.Lasting.
func (*logOutput) Lasting() {}

var (
	_ component.Lasting = emptyInput{}
	_ component.Lasting = (*logOutput)(nil)
)

// logLevels are the levels of wasi:logging, from trace to critical.
var logLevels = []abi.LogLevel{abi.LogDebug, abi.LogDebug, abi.LogInfo, abi.LogWarn, abi.LogError, abi.LogError}

// logging is wasi:logging, which has only drafts.
func (h *host) logging() []broker.Interface {
	return []broker.Interface{{Name: "wasi:logging/logging", Functions: functions{
		"log": func3(func(c caller, level component.Case, topic, text string) any {
			if topic != "" {
				text = topic + ": " + text
			}
			h.Log(c.ctx, logLevels[min(int(level.Number), len(logLevels)-1)], text)
			return nil
		}),
	}}}
}

// warn logs a refusal that the guest learns only as an error code.
func (h *host) warn(ctx context.Context, text string) { h.Log(ctx, abi.LogWarn, text) }

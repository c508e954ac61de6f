package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// maxArguments bounds what is read from standard input, in bytes.
const maxArguments = 64 << 20

func (a *app) callCommand() *cobra.Command {
	var clock, record, tenant string
	cmd := &cobra.Command{
		Use:   "call TOOL [ARGUMENTS | NAME=VALUE ...]",
		Short: "Call a tool",
		Long: `Call a tool, the same way as an MCP client does. Arguments are given by name, as NAME=VALUE, which is
read as the tool's input schema says: text as it is, numbers, true and false, objects and lists as JSON. A list may also
be given by its name once for each element. Or ARGUMENTS is a JSON object, or - to read it from standard input. Without
any, it is {}.

Exit codes: 0 the tool succeeded, 1 the tool failed, 2 usage or configuration, 3 the plugin is pending approval, or the
policy or a person denied the call.`,
		Example: `  hako call get_weather location=東京 date=tomorrow
  hako call get_weather '{"location":"東京"}'
  echo '{"path":"notes.txt"}' | hako call file_read -`,
		Args:              arguments(1, maxWords),
		ValidArgsFunction: a.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := a.callArguments(args[1:])
			if err != nil {
				return usageError(cmd, err)
			}
			now, err := parseClock(clock)
			if err != nil {
				return usageError(cmd, err)
			}
			call := func(offered *catalog.View) (abi.Request, error) {
				request := abi.Request{Method: abi.CallTool, Name: args[0], Arguments: input}
				if input != nil {
					return request, nil
				}
				var schema json.RawMessage
				if tool, ok := offered.Tool(args[0]); ok {
					schema = tool.Spec.InputSchema
				}
				var err error
				if request.Arguments, err = terminal.Arguments(schema, args[1:]); err != nil {
					err = usageError(cmd, err)
				}
				return request, err
			}
			change := func(o *host.Options) {
				o.Clock = now
				if record != "" {
					o.RecordDir = a.path(record)
				}
			}
			return a.request(cmd, tenant, args[0], upstreamFor(args[0]), call, change,
				func(result *pipeline.Result) error { return a.printResult(result) })
		},
	}
	a.requestFlags(cmd, &tenant)
	cmd.Flags().StringVar(&clock, "clock", "",
		"pin the plugin's wall clock to this time (RFC 3339), for replay and tests")
	cmd.Flags().StringVar(&record, "record", "",
		"write the plugin's HTTP exchanges to NAME.recordings.json in this directory")
	return cmd
}

// requestFlags adds the flags of commands that send a request.
func (a *app) requestFlags(cmd *cobra.Command, tenant *string) {
	a.tenantFlag(cmd, tenant)
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print the whole result as MCP JSON")
}

// maxWords bounds the arguments of a command line.
const maxWords = 1000

// callArguments returns the arguments given as JSON on the command line or on standard input. It returns nil if they are
// given by name, so that the schema has to be known.
func (a *app) callArguments(args []string) (json.RawMessage, error) {
	switch {
	case len(args) == 0:
		return json.RawMessage("{}"), nil
	case len(args) > 1 || terminal.IsPair(args[0]):
		return nil, nil
	}
	return a.jsonArguments(args[0])
}

// jsonArguments returns the arguments in a JSON object, or on standard input for "-".
func (a *app) jsonArguments(given string) (json.RawMessage, error) {
	text := []byte(given)
	if given == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(a.stdin, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		if len(text) > maxArguments {
			return nil, fmt.Errorf("the arguments are larger than %s", terminal.Size(maxArguments))
		}
	}
	if err := strictjson.CheckObject(text); err != nil {
		return nil, fmt.Errorf("the arguments %w", err)
	}
	return bytes.TrimSpace(text), nil
}

func parseClock(text string) (func() time.Time, error) {
	if text == "" {
		return nil, nil
	}
	now, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("--clock %q is not a time: write it like 2026-01-02T15:04:05+09:00", text)
	}
	return func() time.Time { return now }, nil
}

// compileNotice is the time after which a command says that it waits for a compilation.
const compileNotice = time.Second

// compileGrace bounds the compilation that goes on after a command has its answer. If the command ended at once, a
// large component would never be in the cache and would be interpreted at every call.
const compileGrace = 2 * time.Minute

// fixed is a request that does not depend on what is offered.
func fixed(request abi.Request) func(*catalog.View) (abi.Request, error) {
	return func(*catalog.View) (abi.Request, error) { return request, nil }
}

// request starts the upstream servers that wanted selects, sends the request that build returns for what is offered, and
// passes the result to show. name is what it is for. change may alter the options of the host; it may be nil.
func (a *app) request(cmd *cobra.Command, tenant, name string, wanted func(*mcpclient.Spec) bool,
	build func(*catalog.View) (abi.Request, error), change func(*host.Options), show func(*pipeline.Result) error) (err error) {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	if err := c.CheckTenant(tenant); err != nil {
		return err
	}
	g, err := server.OpenGovernance(cmd.Context(), c, a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	h, err := a.hostFor(cmd.Context(), c, func(o *host.Options) {
		g.Apply(o)
		o.CompileGrace = compileGrace
		if change != nil {
			change(o)
		}
	})
	if err != nil {
		return err
	}
	defer func() { err = a.closeCompiled(cmd.Context(), h, err) }()
	if other := inspect.OtherVersion(h.Plugins(), name); other != "" {
		printf(a.stderr, "hako: %s\n", other)
	}
	return a.connectUpstreams(cmd.Context(), c, h.Catalog(), wanted, func([]mcpclient.Status) error {
		request, err := build(h.View(terminalCaller(c.Locale, tenant)))
		if err != nil {
			return err
		}
		result, err := a.send(cmd.Context(), h, c.Locale, tenant, request)
		if err != nil {
			return err
		}
		return show(result)
	})
}

// send sends one request of the person at the terminal.
func (a *app) send(ctx context.Context, h *host.Host, locale, tenant string, request abi.Request) (*pipeline.Result,
	error) {
	progress := terminal.NewProgress(a.stderr)
	defer progress.Clear()
	result, err := h.Call(ctx, &pipeline.Call{
		Caller:   terminalCaller(locale, tenant),
		Request:  request,
		Progress: progress.Show,
		Prompter: a.terminal().Prompter(locale),
	})
	return result, callError(h, err)
}

// terminalCaller is the person at the terminal.
func terminalCaller(locale, tenant string) pipeline.Caller {
	return pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: tenant, User: audit.ProcessUser(),
		Operator: true, Locale: locale}
}

// closing closes h and joins what goes wrong with err.
func closing(h *host.Host, err error) error { return errors.Join(err, h.Close()) }

// closeCompiled is closing for a command that has its answer: it says that a plugin is being compiled if that takes long,
// and stops that when ctx ends, which is no failure of the command.
func (a *app) closeCompiled(ctx context.Context, h *host.Host, err error) error {
	compiling := h.Compiling()
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	notice := time.NewTimer(compileNotice)
	defer notice.Stop()
	for {
		select {
		case closeErr := <-closed:
			return errors.Join(err, closeErr)
		case <-notice.C:
			if len(compiling) > 0 {
				printf(a.stderr, "hako: that was the answer. Compiling %s, once, so that later calls are fast: at most %s, and "+
					"safe to stop with Ctrl-C\n", strings.Join(compiling, ", "), compileGrace)
			}
		case <-ctx.Done():
			h.StopCompiling()
			return errors.Join(err, <-closed)
		}
	}
}

// callError gives err its exit code, and an unknown tool the one that was probably meant.
func callError(h *host.Host, err error) error {
	var denied *pipeline.NotAllowedError
	var missing *pipeline.NotFoundError
	switch {
	case errors.As(err, &denied) && denied.Rule != "":
		return &exitError{exitNotAllowed, fmt.Errorf("%w\nSee: hako policy explain %s --frontend %s --as %s", err,
			terminal.ShellWord(denied.Name), pipeline.FrontendTerminal, terminal.ShellWord(audit.ProcessUser()))}
	case errors.As(err, &denied):
		return &exitError{exitNotAllowed, err}
	case errors.As(err, &missing) && missing.Hint == "" && len(missing.Near) == 0:
		missing.Hint = inspect.Hint(h, missing.Kind, missing.Name)
		return missing
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case catalog.Stack(err) != "":
		return fmt.Errorf("%w\n%s", err, catalog.Stack(err))
	}
	return err
}

// printResult writes the result to standard output, or to standard error what is the tool's failure and not its answer.
func (a *app) printResult(result *pipeline.Result) error {
	r, out := result.Response, a.data()
	if r.IsError && !a.asJSON {
		out = a.stderr
	}
	err := error(nil)
	if a.asJSON {
		err = a.printJSON(terminal.NewToolResult(r))
	} else {
		err = terminal.WriteContent(out, r.Content)
	}
	if result.Stack != "" {
		printf(a.stderr, "%s\n", terminal.Block(result.Stack))
	}
	if err == nil && r.IsError {
		return &exitError{code: exitFailed}
	}
	return err
}

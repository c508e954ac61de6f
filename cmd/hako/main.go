// Command hako offers sandboxed Wasm tools to MCP clients. docs/cli.md describes its subcommands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for systems without a time zone database: Windows, an image with nothing else in it

	_ "golang.org/x/crypto/x509roots/fallback" // for systems without certificates

	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/frontend/terminal"
	supervisor "github.com/hako-run/hako/internal/process"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // the tool says that it failed, or a check found something
	exitUsage       = 2 // the command line, the configuration or what it names is wrong
	exitNotAllowed  = 3 // the operator has not said yes to the plugin, or the policy or a person says no to the call
	exitInterrupted = 130
)

// exitError ends the program with a code other than exitUsage. Without an error, the message has been printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failIf returns err, or exitFailed if the command has found something wrong, which it has printed.
func failIf(found bool, err error) error {
	if err == nil && found {
		return &exitError{code: exitFailed}
	}
	return err
}

func main() {
	confine.Main()    // this process may be the one that runs a plugin's command
	supervisor.Main() // or the one that an upstream server's program ends with
	if err := supervisor.Seal(); err != nil {
		printf(terminal.NewScreen(os.Stderr), "hako: other programs of this user can read its secrets: %v\n", err)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program. SIGINT and SIGTERM end it in good order; a second one at once.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(caught)
	go func() {
		select {
		case <-caught:
		case <-ctx.Done():
			return
		}
		cancel()
		signal.Stop(caught) // from now on the system ends the process, unless a part of it wants the signal
		select {
		case <-caught: // which came before that
			os.Exit(exitInterrupted)
		default:
		}
	}()
	return (&app{stdin: stdin, stdout: stdout, stderr: stderr}).run(ctx, args)
}

// run runs one command line and reports its error.
func (a *app) run(ctx context.Context, args []string) int {
	a.pipe = a.stdout
	a.stdout, a.stderr = terminal.NewScreen(a.stdout), terminal.NewScreen(a.stderr)
	root := a.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		code = exit.code
		err = exit.err
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		code = exitInterrupted
		err = errors.New("interrupted")
	}
	if err != nil {
		printf(a.stderr, "hako: %v\n", err)
	}
	return code
}

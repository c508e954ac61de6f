// Command hako-dev tries hako without accounts: it serves fakes of the services that tools use, and runs hako with them.
// docs/cli.md describes its subcommands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hako-run/hako/internal/visible"
)

// Exit codes. The code of hako is passed on.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
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

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program. SIGINT, SIGTERM and SIGHUP end it and the hako that it runs in good order.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(caught)
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, signals: caught}
	return a.run(context.Background(), args)
}

// app is one run of the program.
type app struct {
	stdin io.Reader
	// stdout and stderr are written by hako-dev and hako at the same time.
	stdout, stderr io.Writer
	signals        <-chan os.Signal

	// hako is the flag --hako: the program to run.
	hako string
}

// run runs one command line and reports its error.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code, err = exit.code, exit.err
	}
	if err != nil {
		a.report("hako-dev: %v\n", err)
	}
	return code
}

// report prints to standard error. Hidden characters are escaped.
func (a *app) report(format string, args ...any) {
	_, _ = fmt.Fprintf(visible.NewWriter(a.stderr), format, args...)
}

// untilSignal returns a context that ends at the first signal. Further ones change nothing: "timeout" and others send
// two, and the end has a time limit.
func (a *app) untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-a.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

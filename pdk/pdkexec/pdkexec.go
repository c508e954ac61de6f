// Package pdkexec runs commands on the host, within the plugin's grants.
//
//	exit, err := pdkexec.Run(ctx, &pdkexec.Command{Argv: []string{"git", "status", "--short"}}, &out, &errs)
//
// Run runs a Command to its end, Start returns a Process to read from. Errors are *abi.Error with these codes:
// abi.CodeNotGranted if a rule, the grant or a person denies the command; abi.CodeInvalid if the line cannot be judged
// or the directory does not exist; abi.CodeLimit if the call has started too many commands; abi.CodeBusy if too many
// run already. Their messages say what would be allowed: show them unchanged. A command that fails is not an error.
package pdkexec

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// Command is a command to run. Exactly one of Argv and Line is set.
type Command struct {
	// Argv is a program and its arguments, which are passed unchanged.
	Argv []string
	// Line is a shell command line, with pipes, variables and the like. The host judges every program in it.
	Line string
	// Dir is the working directory: as the plugin sees it ("/workspace/sub"), as the host does, or relative to the
	// first mount. Empty means the first mount. If commands cannot use that, the code is abi.CodeNotGranted.
	Dir string
	// Timeout bounds the command, without the time in which a person is asked. Zero means the call's deadline.
	Timeout time.Duration
}

// Stream is an output stream of a command.
type Stream int

// Streams.
const (
	Stdout Stream = abi.ExecStdout
	Stderr Stream = abi.ExecStderr
)

// Exit describes how a command ended.
type Exit struct {
	// Code is the exit status, or -1 if a signal ended the command; Signal is the name of that signal ("killed").
	Code   int
	Signal string
	// Stopped explains why the host ended the command: abi.StoppedTime or abi.StoppedOutput; empty if it did not.
	Stopped string
	// Cut lists the streams whose output exceeded the limit.
	Cut []Stream
	// Unjudged lists started programs that no rule covers: only the sandbox restricted them.
	Unjudged []string
}

// Process is a started command. It is not safe for concurrent use.
type Process struct {
	source source
	exit   *Exit
	err    error
}

// source is the host's side of a command.
type source interface {
	// read returns stream 0 at the end.
	read(p []byte) (stream, n int, err error)
	wait() (*abi.ExecExit, error)
	close()
}

// Start starts a command, possibly after a person has agreed. Close ends it, and so does the end of the call.
func Start(ctx context.Context, c *Command) (*Process, error) {
	if (len(c.Argv) > 0) == (c.Line != "") {
		return nil, &abi.Error{Code: abi.CodeInvalid,
			Message: "a command needs a program with arguments or a line, and not both"}
	}
	request := &abi.ExecRequest{Argv: c.Argv, Line: c.Line, Cwd: c.Dir, TimeoutMS: c.Timeout.Milliseconds()}
	source, err := hostStart(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Process{source: source}, nil
}

// Read waits for output and reads as much as fits into buffer, of one stream. It returns io.EOF when the command has
// ended and all of its output has been read.
func (p *Process) Read(buffer []byte) (Stream, int, error) {
	if len(buffer) == 0 {
		return 0, 0, io.ErrShortBuffer
	}
	stream, n, err := p.source.read(buffer)
	if err == nil && stream == 0 {
		err = io.EOF
	}
	return Stream(stream), n, err
}

// Wait waits for the end of the command. Unread output can still be read.
func (p *Process) Wait() (*Exit, error) {
	if p.exit != nil || p.err != nil {
		return p.exit, p.err
	}
	exit, err := p.source.wait()
	switch {
	case err != nil:
		p.err = err
	case exit.Error != nil:
		p.err = exit.Error
	default:
		p.exit = &Exit{Code: exit.ExitCode, Signal: exit.Signal, Stopped: exit.Stopped, Unjudged: exit.Unjudged}
		for _, name := range exit.Cut {
			p.exit.Cut = append(p.exit.Cut, map[string]Stream{"stdout": Stdout, "stderr": Stderr}[name])
		}
	}
	return p.exit, p.err
}

// Close ends the command and everything that it started.
func (p *Process) Close() { p.source.close() }

// Run runs a command to its end and copies its output to stdout and stderr while it runs; nil discards it. An error of
// a writer ends the command.
func Run(ctx context.Context, c *Command, stdout, stderr io.Writer) (*Exit, error) {
	p, err := Start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	writers := map[Stream]io.Writer{Stdout: stdout, Stderr: stderr}
	buffer := make([]byte, 32<<10)
	for {
		stream, n, err := p.Read(buffer)
		if errors.Is(err, io.EOF) {
			return p.Wait()
		}
		if err != nil {
			return nil, err
		}
		if w := writers[stream]; w != nil {
			if _, err := w.Write(buffer[:n]); err != nil {
				return nil, err
			}
		}
	}
}

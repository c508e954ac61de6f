// Package pdkexec runs commands on the host's machine, as far as the operator has granted them.
//
//	exit, err := pdkexec.Run(ctx, &pdkexec.Command{Argv: []string{"git", "status", "--short"}}, &out, &errs)
//
// Errors are *abi.Error. Codes that a plugin may want to tell apart: abi.CodeNotGranted, a rule or the grant does not allow the command,
// or nobody agreed to it; abi.CodeInvalid, the line cannot be judged, or the directory is not there; abi.CodeLimit, more
// commands than one call may start; abi.CodeBusy, too many run already. Their messages say what would be allowed: show them as they are.
// A command that ran and failed is no error.
package pdkexec

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// Command is what to run. Exactly one of Argv and Line is set.
type Command struct {
	// Argv is a program with its arguments, each of which it gets as it is.
	Argv []string
	// Line is a line in a shell's language, with pipes, variables and the like. The host judges every program in it.
	Line string
	// Dir is the directory to work in: as the plugin sees it ("/workspace/sub"), as the host does, or relative to the first mount.
	// Empty means the first mount.
	Dir string
	// Timeout ends the command, the time in which a person is asked not counted. Zero leaves that to the call's deadline.
	Timeout time.Duration
}

// Stream is one of the two that a command writes to.
type Stream int

// Streams.
const (
	Stdout Stream = abi.ExecStdout
	Stderr Stream = abi.ExecStderr
)

// Exit says how a command ended.
type Exit struct {
	// Code is the exit status; -1 if a signal ended the command, which Signal then names ("killed").
	Code   int
	Signal string
	// Stopped says why the host ended the command: abi.StoppedTime or abi.StoppedOutput; empty if it did not.
	Stopped string
	// Cut are the streams that had more output than the host passes on.
	Cut []Stream
	// Unjudged are programs that it started of which the host knows nothing: no rule looked into them, the sandbox alone held them.
	Unjudged []string
}

// Process is a command that was started. It is not safe for concurrent use.
type Process struct {
	source source
	exit   *Exit
	err    error
}

// source is the host's side of a command.
type source interface {
	// read returns stream 0 when there is no more.
	read(p []byte) (stream, n int, err error)
	wait() (*abi.ExecExit, error)
	close()
}

// Start starts a command, which may mean that a person is asked first. Close gives it up; the end of the call does too.
func Start(ctx context.Context, c *Command) (*Process, error) {
	if (len(c.Argv) > 0) == (c.Line != "") {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: "a command needs a program with arguments or a line, and not both"}
	}
	request := &abi.ExecRequest{Argv: c.Argv, Line: c.Line, Cwd: c.Dir, TimeoutMS: c.Timeout.Milliseconds()}
	source, err := hostStart(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Process{source: source}, nil
}

// Read waits for output and puts as much as fits into p, of one stream. It returns io.EOF when the command has ended and all of its
// output was read.
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

// Wait waits for the end of the command. Output that was not read can still be read.
func (p *Process) Wait() (*Exit, error) {
	if p.exit != nil || p.err != nil {
		return p.exit, p.err
	}
	told, err := p.source.wait()
	switch {
	case err != nil:
		p.err = err
	case told.Error != nil:
		p.err = told.Error
	default:
		p.exit = &Exit{Code: told.ExitCode, Signal: told.Signal, Stopped: told.Stopped, Unjudged: told.Unjudged}
		for _, name := range told.Cut {
			p.exit.Cut = append(p.exit.Cut, map[string]Stream{"stdout": Stdout, "stderr": Stderr}[name])
		}
	}
	return p.exit, p.err
}

// Close ends the command if it still runs, with all that it started.
func (p *Process) Close() { p.source.close() }

// Run runs a command to its end. What it writes goes to stdout and stderr while it runs; nil drops it. An error of a writer ends the
// command.
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

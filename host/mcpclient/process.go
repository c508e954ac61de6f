package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	supervisor "github.com/hako-run/hako/internal/process"
)

const (
	// stopGrace is how long a program has to end after its input has ended, and again after SIGTERM (MCP, stdio,
	// shutdown).
	stopGrace = 2 * time.Second
	// writeGrace is how long a program may leave its input unread.
	writeGrace = 10 * time.Second
)

// process is a running server program, first of a group of processes of its own.
type process struct {
	command *exec.Cmd
	stdin   *os.File // ours
	stdout  *os.File // ours
	// lifeline kills the program, with all that it has started, when it is closed or this process ends.
	lifeline io.Closer
	// asked counts the messages to the program, each of which it may answer.
	asked atomic.Int64
	// done is closed when the program has ended and all of its group has been told to.
	done chan struct{}
	// err says how it ended, when done is closed.
	err error
}

// startProcess starts the program of spec. What it writes to its standard error goes to log.
func startProcess(ctx context.Context, spec *Spec, env environment, dir string, log io.Writer) (*process, error) {
	command, err := newCommand(ctx, spec, env, dir)
	if err != nil {
		return nil, err
	}
	stdin, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	theirs, stdout, err := swapped(os.Pipe())
	if err != nil {
		return nil, closing(err, ours)
	}
	defer theirs.Close()
	command.Stdin, command.Stdout, command.Stderr = stdin, theirs, log
	command.WaitDelay = time.Second // for others that hold its standard error
	lifeline, err := supervisor.Start(command)
	if err != nil {
		return nil, closing(fmt.Errorf("start %s: %w", spec.Command, withoutPath(err)), ours, stdout)
	}
	p := &process{command: command, stdin: ours, stdout: stdout, lifeline: lifeline, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func swapped(r, w *os.File, err error) (*os.File, *os.File, error) { return w, r, err }

// newCommand fills in the variables of spec. Neither arguments nor environment go into the error.
func newCommand(ctx context.Context, spec *Spec, env environment, dir string) (*exec.Cmd, error) {
	path, err := env.expand(spec.Command)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(path, `/\`) {
		path = from(dir, path)
	}
	args, err := env.expandAll(spec.Args)
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, args...)
	if command.Err != nil {
		return nil, fmt.Errorf("%s is not in the PATH of hako: install it, or write its whole path", spec.Command)
	}
	command.Dir = from(dir, spec.Dir)
	command.Env, err = env.forProgram(ctx, spec.Env)
	return command, err
}

// closing closes what is left of something that failed.
func closing(err error, files ...io.Closer) error {
	for _, file := range files {
		_ = file.Close()
	}
	return err
}

// withoutPath takes off the path, which can hold what a variable had.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (p *process) wait() {
	p.err = p.command.Wait()
	supervisor.KillGroup(p.command.Process) // what it has started and left behind
	_ = p.lifeline.Close()
	close(p.done)
}

// stop ends the program: its input ends, then it is asked to, then killed, and if that is in vain its supervisor too.
// It returns when the program is gone.
func (p *process) stop() {
	_ = p.stdin.Close()
	kill := func(*os.Process) { _ = p.lifeline.Close() }
	for _, end := range []func(*os.Process){supervisor.TerminateGroup, kill, supervisor.KillGroup} {
		timer := time.NewTimer(stopGrace)
		select {
		case <-p.done:
			timer.Stop()
			_ = p.stdout.Close()
			return
		case <-timer.C:
			end(p.command.Process)
		}
	}
	<-p.done
	_ = p.stdout.Close()
}

// transport speaks to the program, one message a line, of which filter bounds the length.
func (p *process) transport(filter func(io.Reader) io.Reader) mcp.Transport {
	return &mcp.IOTransport{Reader: readCloser{filter(p.stdout), p.stdout}, Writer: patient{p.stdin, &p.asked},
		MaxLineLength: -1}
}

// patient gives up on a program that does not read its input. It counts the messages.
type patient struct {
	*os.File
	messages *atomic.Int64
}

func (f patient) Write(data []byte) (int, error) {
	f.messages.Add(int64(bytes.Count(data, []byte("\n"))))
	_ = f.SetWriteDeadline(time.Now().Add(writeGrace)) // where pipes have none, as on Windows, a program can hold up its own calls
	return f.File.Write(data)
}

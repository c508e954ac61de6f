package mcpclient

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/internal/cause"
	supervisor "github.com/hako-run/hako/internal/process"
)

const (
	// stopGrace is the time that a program has to end after the end of its input, and again after SIGTERM (MCP, stdio,
	// shutdown).
	stopGrace = 2 * time.Second
	// writeGrace bounds the time for which a program leaves its input unread.
	writeGrace = 10 * time.Second
)

// process is a running server program, the leader of its own process group.
type process struct {
	command *exec.Cmd
	stdin   *os.File // our end
	stdout  *os.File // our end
	// lifeline kills the program and its descendants when it is closed or this process ends.
	lifeline io.Closer
	// lastLine is the last line of its standard error.
	lastLine *atomic.Pointer[string]
	// done is closed when the program has exited and its group has been signaled.
	done chan struct{}
	// err is the program's exit error, set when done is closed.
	err error
}

// startProcess starts the program of spec. Its standard error goes to log.
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
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, closing(err, ours)
	}
	defer theirs.Close()
	command.Stdin, command.Stdout, command.Stderr = stdin, theirs, log
	command.WaitDelay = time.Second // other processes may hold its standard error
	lifeline, err := supervisor.Start(command)
	if err != nil {
		return nil, closing(fmt.Errorf("start %s: %w", spec.Command, cause.WithoutPath(err)), ours, stdout)
	}
	p := &process{command: command, stdin: ours, stdout: stdout, lifeline: lifeline, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

// newCommand expands the variables of spec. The error contains neither arguments nor environment.
func newCommand(ctx context.Context, spec *Spec, env environment, dir string) (*exec.Cmd, error) {
	path, err := env.path(spec.Command)
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
	working, err := env.path(spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("cwd: %w", err)
	}
	command.Dir = from(dir, working)
	command.Env, err = env.forProgram(ctx, spec.Env)
	return command, err
}

// closing closes files after a failure.
func closing(err error, files ...io.Closer) error {
	for _, file := range files {
		_ = file.Close()
	}
	return err
}

func (p *process) wait() {
	p.err = p.command.Wait()
	supervisor.KillGroup(p.command.Process) // the descendants that it left
	_ = p.lifeline.Close()
	close(p.done)
}

// stop ends the program: it closes its input, then sends SIGTERM, then SIGKILL, and in the end kills its supervisor. It
// returns when the program has exited.
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

// programTransport connects to a program with one message per line. filter bounds the lines from the program, whose
// responses are to requests.
type programTransport struct {
	program  *process
	filter   io.Reader
	requests *requests
}

func (t *programTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := (&mcp.IOTransport{Reader: readCloser{t.filter, t.program.stdout}, Writer: patient{t.program.stdin},
		MaxLineLength: -1}).Connect(ctx)
	return &programConn{conn, t.requests}, err
}

// programConn is a connection that registers its requests.
type programConn struct {
	mcp.Connection
	requests *requests
}

func (c *programConn) Write(ctx context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return c.Connection.Write(ctx, message)
	}
	x := exchangeOf(ctx)
	if !request.IsCall() {
		if x != nil && x.method == methodDiscover && request.Method == methodCancelled {
			return nil // before initialize, no server expects it
		}
		return c.Connection.Write(ctx, message)
	}
	if x == nil {
		x = &exchange{method: request.Method}
	}
	id, _ := request.ID.Raw().(int64)
	remove := c.requests.add(id, x)
	context.AfterFunc(ctx, remove)
	x.sent.Store(true)
	err := c.Connection.Write(ctx, message)
	if err != nil {
		remove()
	}
	return err
}

// patient is a writer that gives up if the program does not read its input.
type patient struct{ *os.File }

func (f patient) Write(data []byte) (int, error) {
	_ = f.SetWriteDeadline(time.Now().Add(writeGrace)) // fails for pipes of Windows
	return f.File.Write(data)
}

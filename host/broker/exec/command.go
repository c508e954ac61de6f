package execbroker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/host/broker/exec/gateway"
	"github.com/hako-run/hako/pdk/abi"
)

// maxCPU is how long one process of a command computes.
const maxCPU = 10 * time.Minute

// Reasons why a command is ended before it ends.
var (
	errClosed  = errors.New("the guest does not want it any more")
	errTimeout = errors.New("its time is up")
	errFlood   = errors.New("it wrote too much")
)

// command is one that was started.
type command struct {
	output *output
	stop   context.CancelCauseFunc
	// done is closed when exit is set and nothing of the command is left.
	done chan struct{}
	exit *abi.ExecExit
}

// launch starts a command, after it was judged and perhaps agreed to. It ends with ctx at the latest.
func (b *Broker) launch(ctx context.Context, call *broker.Call, request *abi.ExecRequest) (*command, *abi.Error) {
	seen := b.watch(ctx, call, request)
	ctx = seen.ctx
	dir, err := os.MkdirTemp(b.temp, "hako-command-")
	if err != nil {
		b.log.Error("a command has no directory", "plugin", b.plugin, "err", err)
		return nil, seen.refused(failf(abi.CodeInternal, "there is no room for the command's own directory"))
	}
	spec, failure := b.specify(ctx, call, request, dir)
	if failure == nil {
		failure = b.enter(ctx)
	}
	if failure != nil {
		b.remove(dir)
		return nil, seen.refused(failure)
	}
	running, stop := context.WithCancelCause(ctx)
	c := &command{stop: stop, done: make(chan struct{}), output: newOutput(func() { stop(errFlood) })}
	timer := newTimer(request.TimeoutMS, func() { stop(errTimeout) })
	stdout, stderr := stream{c.output, abi.ExecStdout}, stream{c.output, abi.ExecStderr}
	options := &confine.Options{
		Stdout: stdout, Stderr: stderr,
		Ask: func(ctx context.Context, q confine.Question) error {
			defer timer.pause()()
			return ask(ctx, call, broker.Question{Text: q.Command, Rule: q.Rule, Reason: q.Reason})
		},
		Network: func(ctx context.Context, listeners []net.Listener) {
			b.gateway.Serve(ctx, listeners, gateway.Client{Tool: call.Tool, Notify: func(text string) { fmt.Fprintf(stderr, "hako: %s\n", text) }})
		},
	}
	go func() {
		defer close(c.done)
		exit, err := confine.Run(running, spec, options)
		timer.stop()
		c.exit = c.ended(exit, err, context.Cause(running))
		stop(nil)
		b.remove(dir)
		<-b.running
		seen.ended(c.exit)
		c.output.end()
	}()
	return c, nil
}

// specify says what is to run and what it may do. dir is the command's own directory.
func (b *Broker) specify(ctx context.Context, call *broker.Call, request *abi.ExecRequest, dir string) (*confine.Spec, *abi.Error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, failf(abi.CodeInternal, "the command's own directory is gone")
	}
	home, temp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(temp, 0o700)); err != nil {
		return nil, failf(abi.CodeInternal, "the command's own directory cannot be used")
	}
	spec := b.base
	spec.Argv, spec.Line = request.Argv, request.Line
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], "HOME="+home, "TMPDIR="+temp)
	spec.Write = append(spec.Write[:len(spec.Write):len(spec.Write)], home, temp)
	if b.gateway != nil {
		if spec.Replace, err = writeNames(dir, b.gateway.Hosts()); err != nil {
			return nil, failf(abi.CodeInternal, "the command's own directory cannot be used")
		}
	}
	var failure *abi.Error
	if spec.Dir, failure = b.roots.dir(request.Cwd, home); failure != nil {
		return nil, failure
	}
	return &spec, b.permit(ctx, call, &spec)
}

// writeNames writes files to dir by which the command finds the addresses of names, and returns which they replace.
func writeNames(dir, hosts string) (map[string]string, error) {
	replace := map[string]string{}
	for path, text := range map[string]string{"/etc/hosts": hosts, "/etc/nsswitch.conf": "hosts: files\n"} {
		if _, err := os.Stat(path); err != nil {
			continue // there is no place for it
		}
		file := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		replace[path] = file
	}
	return replace, nil
}

// enter waits until fewer than maxRunning commands run.
func (b *Broker) enter(ctx context.Context) *abi.Error {
	select {
	case b.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return failf(abi.CodeBusy, "%d commands of the plugin run already: try again", maxRunning)
	}
}

// ended is what the guest is told of a command's end.
func (c *command) ended(exit *confine.Exit, err, cause error) *abi.ExecExit {
	told := &abi.ExecExit{ExitCode: -1, Signal: "killed", Cut: c.output.cut()}
	switch {
	case err == nil:
		told.ExitCode, told.Signal, told.Unjudged = exit.Code, exit.Signal, exit.Unjudged
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		told.Stopped = abi.StoppedTime
	case errors.Is(cause, errFlood):
		told.Stopped = abi.StoppedOutput
	case cause != nil:
		told.Error = failf(abi.CodeCanceled, "%v", cause)
	case errors.Is(err, confine.ErrSupervisor):
		// It shares the command's limits, and was in its way.
	default:
		told.Error = failf(abi.CodeInternal, "the command could not be run: %v", err)
	}
	return told
}

// remove deletes a command's own directory, also what it made unreadable.
func (b *Broker) remove(dir string) {
	err := os.RemoveAll(dir)
	if err != nil {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		b.log.Warn("a command's own directory stays behind", "plugin", b.plugin, "path", dir, "err", err)
	}
}

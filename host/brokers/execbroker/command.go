package execbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/internal/scratch"
	"github.com/hako-run/hako/pdk/abi"
)

// maxCPU limits the CPU time of one process of a command.
const maxCPU = 10 * time.Minute

// Causes for which a command is stopped.
var (
	errClosed  = errors.New("the guest closed it")
	errTimeout = errors.New("it timed out")
	errFlood   = errors.New("its output is too large")
)

// command is a started command.
type command struct {
	output *output
	stop   context.CancelCauseFunc
	// done is closed when exit is set and all processes and files of the command are gone.
	done chan struct{}
	exit *abi.ExecExit
}

// launch authorizes a command and starts it. The command is stopped when ctx ends.
func (b *Broker) launch(ctx context.Context, call *broker.Call, request *abi.ExecRequest) (*command, *abi.Error) {
	seen := b.watch(ctx, call, request)
	ctx = seen.ctx
	dir, err := scratch.New(b.temp, "hako-command")
	if err != nil {
		b.log.Error("a command's temporary directory cannot be created", "plugin", b.plugin, "err", err)
		return nil, seen.refused(abi.Errorf(abi.CodeInternal, "the command's temporary directory cannot be created"))
	}
	spec, failure := b.buildSpec(ctx, call, request, dir.Path)
	if failure == nil {
		failure = b.acquireSlot(ctx)
	}
	if failure != nil {
		b.removeDir(dir)
		return nil, seen.refused(failure)
	}
	running, stop := context.WithCancelCause(ctx)
	c := &command{
		stop: stop, done: make(chan struct{}),
		output: &output{flood: func() { stop(errFlood) }, ready: make(chan struct{}, 1)},
	}
	timer := newTimer(request.TimeoutMS, func() { stop(errTimeout) })
	stdout, stderr := stream{c.output, abi.ExecStdout}, stream{c.output, abi.ExecStderr}
	options := &confine.Options{
		Stdout: stdout, Stderr: stderr,
		Ask: func(ctx context.Context, q confine.Question) error {
			defer timer.pause()()
			return ask(ctx, call, broker.Question{Text: q.Command, Rule: q.Rule, Reason: q.Reason})
		},
		Network: func(ctx context.Context, listeners []net.Listener) {
			b.gateway.Serve(ctx, listeners, gateway.Client{Tool: call.Tool,
				Notify: func(text string) { fmt.Fprintf(stderr, "hako: %s\n", text) }})
		},
	}
	go func() {
		defer close(c.done)
		exit, err := confine.Run(running, spec, options)
		timer.stop()
		c.exit = c.exitFor(exit, err, context.Cause(running))
		stop(nil)
		b.removeDir(dir)
		<-b.running
		seen.ended(c.exit)
		c.output.close()
	}()
	return c, nil
}

// buildSpec returns the specification of a command and authorizes it. dir is its temporary directory.
func (b *Broker) buildSpec(ctx context.Context, call *broker.Call, request *abi.ExecRequest,
	dir string) (*confine.Spec, *abi.Error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the command's temporary directory is gone")
	}
	home, temp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(temp, 0o700)); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the command's temporary directory cannot be used")
	}
	spec := b.base
	spec.Argv, spec.Line = request.Argv, request.Line
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], "HOME="+home, "TMPDIR="+temp)
	spec.Write = append(spec.Write[:len(spec.Write):len(spec.Write)], home, temp)
	if b.gateway != nil {
		if spec.Replace, err = writeNames(dir, b.gateway.Hosts()); err != nil {
			return nil, abi.Errorf(abi.CodeInternal, "the command's temporary directory cannot be used")
		}
	}
	var failure *abi.Error
	if spec.Dir, failure = b.roots.resolveDir(request.Cwd, home); failure != nil {
		return nil, failure
	}
	return &spec, b.authorize(ctx, call, &spec)
}

// writeNames writes the files that map host names to addresses to dir. It returns the system files that they replace.
func writeNames(dir, hosts string) (map[string]string, error) {
	replace := map[string]string{}
	for path, text := range map[string]string{"/etc/hosts": hosts, "/etc/nsswitch.conf": "hosts: files\n"} {
		if _, err := os.Stat(path); err != nil {
			continue // the file that it would replace does not exist
		}
		file := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		replace[path] = file
	}
	return replace, nil
}

// acquireSlot waits until fewer than maxRunning commands run.
func (b *Broker) acquireSlot(ctx context.Context) *abi.Error {
	select {
	case b.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return abi.Errorf(abi.CodeBusy, "the plugin already runs %d commands: try again", maxRunning)
	}
}

// exitFor returns the guest's view of how a command ended.
func (c *command) exitFor(exit *confine.Exit, err, cause error) *abi.ExecExit {
	result := &abi.ExecExit{ExitCode: -1, Signal: "killed", Cut: c.output.truncated()}
	switch {
	case err == nil:
		result.ExitCode, result.Signal, result.Unjudged = exit.Code, exit.Signal, exit.Unjudged
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		result.Stopped = abi.StoppedTime
	case errors.Is(cause, errFlood):
		result.Stopped = abi.StoppedOutput
	case cause != nil:
		result.Error = abi.Errorf(abi.CodeCanceled, "%v", cause)
	case errors.Is(err, confine.ErrSupervisor):
	default:
		result.Error = abi.Errorf(abi.CodeInternal, "the command could not be run: %v", err)
	}
	return result
}

// removeDir deletes a command's temporary directory.
func (b *Broker) removeDir(dir *scratch.Dir) {
	if err := dir.Remove(); err != nil {
		b.log.Warn("a command's temporary directory cannot be removed",
			"plugin", b.plugin, "path", dir.Path, "err", err)
	}
}

// Package confine runs a command in a child process that the kernel restricts to a specification. Run runs the command
// of a Spec; Main must be called first in the program; Check reports what this machine supports.
//
// The child is this program started again, on Linux in its own user, mount, network, UTS and IPC namespaces. It makes
// the file system read-only except for the paths that the command may write, and restricts itself irrevocably with
// Landlock rules and resource limits. Then it starts this program once more in a PID namespace, as the supervisor of
// the command. The supervisor installs a seccomp filter, interprets shell lines, and judges each program with its final
// arguments before it starts. When the supervisor ends, at the end of the command or at the deadline, the kernel kills
// all processes in its namespace.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/hako-run/hako/host/judge"
)

// Spec describes a command and its restrictions. Paths are absolute host paths.
type Spec struct {
	// Argv is a program with its arguments; Line is a shell command line. Exactly one of them is set.
	Argv []string
	Line string
	Dir  string
	// Env is the environment, "NAME=value". Lines cannot change variables that select programs or libraries
	// (judge.IsLoader).
	Env []string
	// Programs may be started. Shells are not among them: this package interprets their lines and scripts.
	Programs []Program
	// Rules precede the built-in rules of package judge.
	Rules []judge.Rule
	// Approved are commands that a person has already approved.
	Approved [][]string

	// Read and Write are files, and directories with all that is below them.
	//
	// Links in Read, Write and Execute are followed when the command starts.
	Read, Write []string
	// Execute are files, and directories with all that is below them, that programs may execute, for example their
	// helpers.
	Execute []string
	// Replace maps paths of existing files to the paths of the files that the command sees there instead, read-only.
	Replace map[string]string
	// Listen are TCP addresses in the command's network namespace at which the host accepts connections; see
	// Options.Network. The command can reach nothing else. If it is empty, the command cannot create sockets.
	Listen []netip.AddrPort
	Limits Limits
	// Loose runs the command even if the kernel cannot confine it. Without namespaces, a command with Listen then has
	// the network of the host, and Options.Network is not called.
	Loose bool
}

// Program is a program that may be started.
type Program struct {
	// Name is the name by which it is started; Path is its file, with links resolved.
	Name, Path string
}

// Limits limit a command's resources. Zero means no limit.
type Limits struct {
	// CPU is the CPU time of each process, in whole seconds; Memory is its private memory, in bytes.
	CPU    time.Duration
	Memory uint64
	// Processes is the number of processes; Files is the number of open files of each process; FileSize is the size of
	// a written file, in bytes.
	Processes, Files, FileSize uint64
}

// Question is a command that a rule wants a person to approve.
type Question struct {
	Command string `json:"command"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
}

// Exit describes how a command ended.
type Exit struct {
	// Code is the exit status, or -1 if a signal ended the command. Signal names that signal ("killed").
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Unjudged are the started programs that package judge does not know and no rule decided on.
	Unjudged []string `json:"unjudged,omitempty"`
}

// Options connect a command with the host.
type Options struct {
	// Stdout and Stderr receive the output. One goroutine writes to each.
	Stdout, Stderr io.Writer
	// Ask is called when a person must approve a command, one question at a time. An error refuses it. Nil refuses all.
	Ask func(ctx context.Context, q Question) error
	// Network is called once with a listener for each address in Spec.Listen. It must return when ctx ends, at the
	// latest when the command ends, and must not leave goroutines behind.
	Network func(ctx context.Context, listeners []net.Listener)
}

// Errors of Run, besides ctx's own.
var (
	// ErrCannotConfine means that the kernel lacks a needed feature and Spec.Loose is not set.
	ErrCannotConfine = errors.New("this machine cannot confine commands")
	// errNoMain means that this program has not called Main, and so cannot run as the child.
	errNoMain = errors.New("the program does not call confine.Main when it starts")
	// ErrSupervisor means that the child ended without reporting how the command ended.
	ErrSupervisor = errors.New("the supervisor of the command has ended")
)

// Time for which output is read after the child has ended. With a PID namespace no writer is left, and all output
// arrives. Without one, a surviving process may keep the pipes open.
const (
	outputGrace          = time.Minute
	outputGraceSurvivors = 200 * time.Millisecond
)

// Run runs a command until it ends or ctx ends, and returns how it ended. By then all of its processes have ended. If
// ctx ends first, the error matches ctx.Err(). Run is safe for concurrent use.
func Run(ctx context.Context, spec *Spec, options *Options) (*Exit, error) {
	if !ready.Load() {
		return nil, errNoMain
	}
	if !spec.Loose {
		if s := Check(); !s.Confines() || len(spec.Listen) > 0 && !s.ConfinesNetwork() {
			return nil, fmt.Errorf("%w: %s", ErrCannotConfine, s.Missing())
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, self, spec, options)
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	stopNetwork, err := c.serveNetwork(ctx, spec, options.Network)
	if err != nil {
		c.end()
		return nil, errors.Join(ctx.Err(), fmt.Errorf("the command's network: %w", err))
	}
	exit, err := c.serveQuestions(ctx, options.Ask)
	c.end()
	stopNetwork()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return exit, err
}

// child is the host's side of the process that confines itself.
type child struct {
	command *exec.Cmd
	// control is a connection to the supervisor. The child ends when lifeline is closed, which the kernel does if this
	// process is killed.
	control, lifeline *os.File
	// network receives the listeners of the command's network.
	network *os.File
}

// Values of os.Args[0] and numbers of the open files in the child.
const (
	confineName    = "hako-confine"
	supervisorName = "hako-watch"
	probeName      = "hako-probe"

	controlFD, specFD, lifelineFD, networkFD = 3, 4, 5, 6
)

func start(ctx context.Context, self string, spec *Spec, options *Options) (*child, error) {
	encoded, err := json.Marshal(childSpec{spec, Check().Namespaces})
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(ctx, self)}
	theirs, err := c.open(encoded)
	defer func() {
		for _, file := range theirs {
			_ = file.Close() // the child has its own
		}
	}()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.command.Args = []string{confineName}
	c.command.Env = []string{ids()}
	c.command.Dir = "/"
	c.command.Stdout, c.command.Stderr = options.Stdout, options.Stderr
	c.command.ExtraFiles = theirs
	c.command.Cancel = func() error { return kill(c.command.Process) }
	c.command.WaitDelay = outputGrace
	if !Check().Namespaces {
		c.command.WaitDelay = outputGraceSurvivors
	}
	setNamespaces(c.command)
	if err := c.command.Start(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// open creates the child's open files, in the order of their numbers, and the host's ends of them.
func (c *child) open(spec []byte) (theirs []*os.File, err error) {
	var control, described, life, network *os.File
	if c.control, control, err = socketPair("control"); err == nil {
		theirs = append(theirs, control)
		described, err = memoryFile(spec)
	}
	if err == nil {
		theirs = append(theirs, described)
		life, c.lifeline, err = os.Pipe()
	}
	if err == nil {
		theirs = append(theirs, life)
		c.network, network, err = socketPair("network")
	}
	if err == nil {
		theirs = append(theirs, network)
	}
	return theirs, err
}

// close closes the host's ends, of which open may have failed to open some.
func (c *child) close() (err error) {
	for _, file := range []*os.File{c.control, c.lifeline, c.network} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// message is a message from the child: a question, or how the command ended.
type message struct {
	Ask    *Question `json:"ask,omitempty"`
	Exit   *Exit     `json:"exit,omitempty"`
	Failed string    `json:"failed,omitempty"`
}

// reply is the host's answer to a question.
type reply struct {
	// No is the reason for a refusal; empty means approval.
	No string `json:"no,omitempty"`
}

// serveQuestions answers the child's questions until it reports how the command ended.
func (c *child) serveQuestions(ctx context.Context, ask func(context.Context, Question) error) (*Exit, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.control.Close() })
	defer stop()
	messages, answers := json.NewDecoder(c.control), json.NewEncoder(c.control)
	for {
		var m message
		err := messages.Decode(&m)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrSupervisor, err)
		case m.Exit != nil:
			return m.Exit, nil
		case m.Ask == nil:
			return nil, errors.New(m.Failed)
		}
		if err := answers.Encode(askHost(ctx, ask, *m.Ask)); err != nil {
			return nil, err
		}
	}
}

func askHost(ctx context.Context, ask func(context.Context, Question) error, q Question) reply {
	if ask == nil {
		return reply{No: "nobody can be asked"}
	}
	if err := ask(ctx, q); err != nil {
		return reply{No: err.Error()}
	}
	return reply{}
}

// end kills the remaining processes and waits for them.
func (c *child) end() {
	_ = kill(c.command.Process)
	_ = c.command.Wait()
	_ = c.close()
}

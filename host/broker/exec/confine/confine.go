// Package confine runs a command in a child process that the kernel holds to what was granted.
//
// The child is this program started again (see Main), on Linux in namespaces of its own: of users, mounts, network and System V IPC. It
// makes the file system read-only but for what the command may write, and gives up its rights, for good and for all that it starts:
// Landlock rules hold it to paths, resource limits to its share. Then it starts itself once more, in a namespace of
// processes, and that second process watches over the command: it filters system calls, interprets lines for a shell, and judges each
// program with its final arguments when it starts. When it ends, by itself or at the deadline, the kernel ends all that it has started.
// Check says what this machine can do.
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

	"github.com/hako-run/hako/host/broker/exec/judge"
)

// Spec says what to run and what it may do. Paths are absolute and of the host.
type Spec struct {
	// Argv is a program with its arguments; Line is a line for a shell. Exactly one of them is set.
	Argv []string
	Line string
	Dir  string
	// Env is the environment, "NAME=value". Lines cannot change the variables in it that say which programs run (judge.IsLoader).
	Env []string
	// Programs may start, besides shells, whose lines and scripts are interpreted here.
	Programs []Program
	// Rules come before judge's own.
	Rules []judge.Rule
	// Approved are commands that a person has agreed to already.
	Approved [][]string

	// Read and Write are files and directories with all that is below them.
	//
	// Links in Read, Write and Execute are followed when the command starts.
	Read, Write []string
	// Execute are files, or directories below which anything, may be executed by programs, for example their helpers.
	Execute []string
	// Replace are files that the command sees in the place of others: by the path that it knows, the path of the file that it gets, to
	// read. Both must be there.
	Replace map[string]string
	// Listen are TCP addresses at which the host accepts connections from the command, in the command's own network; see Options.Network.
	// Nothing else can be reached from there. Empty means that the command can make no sockets.
	Listen []netip.AddrPort
	Limits Limits
	// Loose runs the command even where the kernel cannot hold it. Where there are no namespaces, a command with Listen then has the
	// network of the host, and Options.Network is not called.
	Loose bool
}

// Program is one that may start.
type Program struct {
	// Name is what it is called by; Path is the file that is meant, with links resolved.
	Name, Path string
}

// Limits bound what a command uses. Zero means no limit.
type Limits struct {
	// CPU is computing time of each process, in whole seconds; Memory its private memory, in bytes.
	CPU    time.Duration
	Memory uint64
	// Processes is how many there may be at once; Files how many each holds open; FileSize the size of a file it writes, in bytes.
	Processes, Files, FileSize uint64
}

// Question is a command that a rule wants a person to agree to.
type Question struct {
	Command string `json:"command"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
}

// Exit says how a command ended.
type Exit struct {
	// Code is the exit status; -1 if a signal ended it, which Signal then names ("killed").
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Unjudged are programs that it started of which hako knows nothing: no rule could look into them.
	Unjudged []string `json:"unjudged,omitempty"`
}

// Options are the host's side of a command.
type Options struct {
	// Stdout and Stderr get the output. Each is written to by one goroutine.
	Stdout, Stderr io.Writer
	// Ask is called when a command has to be agreed to, one question at a time. Nil answers no.
	Ask func(ctx context.Context, q Question) error
	// Network is called once with a listener for each address in Spec.Listen. It returns when ctx ends, which happens with the command at the
	// latest, and leaves nothing running.
	Network func(ctx context.Context, listeners []net.Listener)
}

// Errors of Run, besides ctx's own.
var (
	// ErrCannotConfine: the kernel lacks what Spec asks for, and Spec.Loose is not set.
	ErrCannotConfine = errors.New("this machine cannot confine commands")
	// ErrNoMain: this program has not called Main, and so cannot be started again as a child.
	ErrNoMain = errors.New("the program does not call confine.Main when it starts")
	// ErrSupervisor: the child ended without saying how the command ended.
	ErrSupervisor = errors.New("the process that watches over the command has ended")
)

// How long output is read on after the child has ended. Where the kernel ends all that it started, nobody is left to write, and what was
// written arrives; elsewhere somebody may keep the pipes open.
const (
	outputGrace          = time.Minute
	outputGraceSurvivors = 200 * time.Millisecond
)

// Run runs the command until it ends or ctx does, and returns how it ended. All processes that it started are gone then. If ctx ends
// first the error matches ctx.Err(). It is safe for concurrent use.
func Run(ctx context.Context, spec *Spec, options *Options) (*Exit, error) {
	if !ready.Load() {
		return nil, ErrNoMain
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
	exit, err := c.converse(ctx, options.Ask)
	c.end()
	stopNetwork()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return exit, err
}

// child is the process that confines itself, as the host sees it.
type child struct {
	command *exec.Cmd
	// control leads to the process that watches over the command. The child ends when lifeline is closed, as the kernel does if this
	// process is killed.
	control, lifeline *os.File
	// network brings the listeners of the command's network.
	network *os.File
}

// What the child finds as its own name and as open files.
const (
	confineName = "hako-confine"
	watchName   = "hako-watch"
	probeName   = "hako-probe"

	controlFD, orderFD, lifelineFD, networkFD = 3, 4, 5, 6
)

func start(ctx context.Context, self string, spec *Spec, options *Options) (_ *child, err error) {
	encoded, err := json.Marshal(order{spec, Check().Namespaces})
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(ctx, self)}
	theirs, err := c.open(encoded)
	defer func() {
		for _, file := range theirs {
			err = errors.Join(err, file.Close())
		}
	}()
	if err != nil {
		return nil, err
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
	separate(c.command)
	if err := c.command.Start(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// open makes the child's open files, in their order, and this side of them.
func (c *child) open(order []byte) (theirs []*os.File, err error) {
	var control, described, life, network *os.File
	if c.control, control, err = socketPair("control"); err == nil {
		theirs = append(theirs, control)
		described, err = memoryFile(order)
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

func (c *child) close() error {
	return errors.Join(c.control.Close(), c.lifeline.Close(), c.network.Close())
}

// message is what the child says: a question, or how the command ended.
type message struct {
	Ask    *Question `json:"ask,omitempty"`
	Exit   *Exit     `json:"exit,omitempty"`
	Failed string    `json:"failed,omitempty"`
}

// answer is what it is told.
type answer struct {
	// No is why not; empty means yes.
	No string `json:"no,omitempty"`
}

// converse answers the child's questions until it says how the command ended.
func (c *child) converse(ctx context.Context, ask func(context.Context, Question) error) (*Exit, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.control.Close() })
	defer stop()
	messages, answers := json.NewDecoder(c.control), json.NewEncoder(c.control)
	for {
		var m message
		err := messages.Decode(&m)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %v", ErrSupervisor, c.command.Wait())
		case m.Exit != nil:
			return m.Exit, nil
		case m.Ask == nil:
			return nil, errors.New(m.Failed)
		}
		if err := answers.Encode(reply(ctx, ask, *m.Ask)); err != nil {
			return nil, err
		}
	}
}

func reply(ctx context.Context, ask func(context.Context, Question) error, q Question) answer {
	if ask == nil {
		return answer{No: "nobody can be asked"}
	}
	if err := ask(ctx, q); err != nil {
		return answer{No: err.Error()}
	}
	return answer{}
}

// end kills what is left and waits for it.
func (c *child) end() {
	_ = kill(c.command.Process)
	_ = c.command.Wait()
	_ = c.close()
}

//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const supervised = true

// separate starts the program in a new process group.
func separate(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
}

func startGroup(command *exec.Cmd) (io.Closer, error) {
	separate(command)
	group := &group{command}
	if command.Cancel != nil {
		command.Cancel = group.Close
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return group, nil
}

// group is the process group of a started program.
type group struct{ command *exec.Cmd }

func (g *group) Close() error {
	KillGroup(g.command.Process)
	return nil
}

// TerminateGroup sends SIGTERM to the processes of a group. Errors are ignored: they mean that no process is left.
func TerminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// KillGroup kills the processes of a group.
func KillGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// supervise runs the program at path and returns its exit status.
func supervise(path string, argv []string) int {
	runtime.GOMAXPROCS(1)
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(reportFD)
	life, report := os.NewFile(lifelineFD, "lifeline"), os.NewFile(reportFD, "report")
	// Signals to the group are for the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if err := becomeSubreaper(); err != nil {
		return failed(report, err)
	}
	command := &exec.Cmd{Path: path, Args: argv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := command.Start(); err != nil {
		return failed(report, err)
	}
	report.Close()
	if err := releaseStreams(); err != nil {
		_ = command.Process.Kill()
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		_, _ = io.Copy(io.Discard, life)
	}()
	select {
	case <-ended:
	case <-orphaned:
		_ = command.Process.Kill()
		<-ended
	}
	killRest()
	return status(command.ProcessState)
}

// releaseStreams closes the supervisor's copies of the program's streams, which would keep them open.
func releaseStreams() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		err = errors.Join(err, dup(int(null.Fd()), fd))
	}
	return err
}

func status(state *os.ProcessState) int {
	if how, ok := state.Sys().(syscall.WaitStatus); ok && how.Signaled() {
		return 128 + int(how.Signal())
	}
	return state.ExitCode()
}

// Package process starts programs that end when this process ends, however it ends, with all that they have started.
//
// Where there is a supervisor (on Unix), a program is started by this program started again (see Main). The supervisor holds a pipe to
// the process that started it: when the other end closes, because it was closed or because the kernel did that for a process that was
// killed, it kills the program. On Linux it becomes the parent of all that the program leaves behind, also of what has made itself a
// session of its own, and kills that too.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

// Main does the supervisor's work and does not return, if this process is one. A program that calls Start calls it first of all.
func Main() {
	ready.Store(true)
	if len(os.Args) > 2 && os.Args[0] == supervisorName {
		os.Exit(supervise(os.Args[1], os.Args[2:]))
	}
}

// ready says that Main was called: otherwise a supervisor would be one more of the whole program.
var ready atomic.Bool

// What the supervisor finds as its own name and as open files.
const (
	supervisorName       = "hako-supervisor"
	lifelineFD, reportFD = 3, 4
)

// Start starts command as its own Start does, first of a group of processes. When lifeline is closed, or this process ends, the program is
// killed with all that it has started. Without a supervisor closing lifeline kills the program, or its group where there are groups.
//
// command.Process is the supervisor then, which ends as the program does: with its status, or 128 and the number of the signal.
func Start(command *exec.Cmd) (lifeline io.Closer, err error) {
	separate(command)
	if !supervised || !ready.Load() {
		return closer(func() error { KillGroup(command.Process); return nil }), command.Start()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	life, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer life.Close()
	report, told, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	defer report.Close()
	command.Args = append([]string{supervisorName, command.Path}, command.Args...)
	command.Path, command.ExtraFiles = self, []*os.File{life, told}
	err = command.Start()
	told.Close()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	failure, err := io.ReadAll(io.LimitReader(report, 4<<10))
	if err == nil && len(failure) > 0 {
		err = errors.New(string(failure))
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close(), ignoreExit(command.Wait()))
	}
	return ours, nil
}

// ignoreExit is err, unless it says how the process ended.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

type closer func() error

func (f closer) Close() error { return f() }

// failed tells the process that started the supervisor why the program did not start.
func failed(report io.Writer, err error) int {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err // the path can hold what a variable had
	}
	fmt.Fprint(report, err)
	return 127
}

// Package process starts programs that are killed with all their descendants when this process ends in any way. Start
// starts a program; Main must be called first in the program; Seal protects the memory of this process.
//
// On Unix this program is started once more as a supervisor, which starts the program. The supervisor holds a pipe to
// its parent. When the other end is closed, by the parent or by the kernel at the parent's death, it kills the program.
// On Linux the supervisor is also the subreaper of the program's descendants, including those in their own sessions,
// and kills them too. On Windows the program runs in a job object, which the system closes at this process's end.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"github.com/hako-run/hako/internal/cause"
)

// Main runs the supervisor, without returning, if this process was started as one. A program that uses Start must call
// it first.
func Main() {
	ready.Store(true)
	if len(os.Args) > 2 && os.Args[0] == supervisorName {
		// Under the race detector os.Exit would wait for a second.
		syscall.Exit(supervise(os.Args[1], os.Args[2:]))
	}
}

// ready is set by Main. Without Main, a supervisor would run the whole program.
var ready atomic.Bool

// The value of os.Args[0] and the numbers of the open files in the supervisor.
const (
	supervisorName       = "hako-supervisor"
	lifelineFD, reportFD = 3, 4
)

// Start is command.Start in a new process group. When lifeline is closed or this process ends, the program is killed
// with all its descendants. On Unix without a supervisor, only closing lifeline kills the process group.
//
// With a supervisor, command.Process is the supervisor. It exits with the program's status, or with 128 plus the number
// of the signal that ended the program.
func Start(command *exec.Cmd) (lifeline io.Closer, err error) {
	if !supervised || !ready.Load() {
		return StartGroup(command)
	}
	separate(command)
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

// StartGroup is command.Start in a new process group on Unix and a new job object on Windows. Closing group kills all
// processes in it; so does the context of command, if it has one. Close it after command.Wait in any case. It may be
// closed several times. On Windows the end of this process closes it too.
func StartGroup(command *exec.Cmd) (group io.Closer, err error) { return startGroup(command) }

// ignoreExit returns err unless it is an exit status.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// failed reports to the parent why the program did not start.
func failed(report io.Writer, err error) int {
	fmt.Fprint(report, cause.WithoutPath(err)) // the path may contain the value of a variable
	return 127
}

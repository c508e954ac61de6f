package compile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/internal/process"
)

// Self returns the path of this program, also if its file has been replaced.
func Self() (string, error) {
	const path = "/proc/self/exe"
	if _, err := os.Readlink(path); err == nil {
		return path, nil
	}
	return os.Executable()
}

// start starts the child, which the kernel kills when this thread or process ends. Closing group kills the child and
// all that it started.
func start(child *exec.Cmd) (group io.Closer, err error) {
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return process.StartGroup(child)
}

func killedBy(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// confineSelf limits this process and gives up its rights.
func confineSelf(o *childConfig) error {
	// The kernel counts processor time by another clock than it reports, so the signal decides and not the report. The
	// second limit kills a process that does not get to see the signal.
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU)
	go func() {
		<-over
		os.Exit(exitCPU)
	}()
	for resource, limit := range map[int]unix.Rlimit{
		unix.RLIMIT_DATA:  {Cur: uint64(o.Memory), Max: uint64(o.Memory)},
		unix.RLIMIT_CPU:   {Cur: o.CPU, Max: o.CPU + 2},
		unix.RLIMIT_FSIZE: {Cur: uint64(o.MaxFile), Max: uint64(o.MaxFile)},
		unix.RLIMIT_CORE:  {},
	} {
		if err := unix.Setrlimit(resource, &limit); err != nil {
			return fmt.Errorf("%w: setrlimit: %w", errConfine, err)
		}
	}
	// If memory runs out nevertheless, the kernel should kill this process instead of the host. Calls have priority
	// over compiling.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 5)
	if err := confine.Enclose("."); err != nil {
		return fmt.Errorf("%w: %w", errConfine, err)
	}
	return nil
}

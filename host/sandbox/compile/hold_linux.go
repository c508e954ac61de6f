package compile

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/host/broker/exec/confine"
)

// self is this program, also if its file has been replaced.
func self() (string, error) {
	const path = "/proc/self/exe"
	if _, err := os.Readlink(path); err == nil {
		return path, nil
	}
	return os.Executable()
}

// bind lets the child end with this process.
func bind(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	child.Cancel = func() error { kill(child); return nil }
}

// kill ends the child with all that it started.
func kill(child *exec.Cmd) {
	if child.Process != nil {
		_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL)
	}
}

func signalled(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// hold gives up this process's rights and bounds what it may take.
func hold(o *order) error {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_DATA: uint64(o.Memory), unix.RLIMIT_CPU: o.CPU, unix.RLIMIT_FSIZE: uint64(o.Largest), unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("%w: setrlimit: %w", errHold, err)
		}
	}
	// Where memory runs out all the same, the kernel is to end this process and not the host; and calls come first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 5)
	if err := confine.Enclose("."); err != nil {
		return fmt.Errorf("%w: %w", errHold, err)
	}
	return nil
}

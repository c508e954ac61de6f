package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// adopt makes this process the parent of all that its descendants leave behind.
func adopt() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// killTime bounds killRest: a process that the kernel holds, on a disk that does not answer, may stay.
const killTime = 5 * time.Second

// killRest kills all descendants, until there are none: a process can start another one while it is looked for.
func killRest() {
	for deadline := time.Now().Add(killTime); time.Now().Before(deadline); {
		list := descendants(os.Getpid())
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for reaped := 1; reaped > 0; {
			reaped, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}

// descendants are the processes below root.
func descendants(root int) []int {
	directory, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer directory.Close()
	names, _ := directory.Readdirnames(-1)
	children := map[int][]int{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			parent := parentOf(name)
			children[parent] = append(children[parent], pid)
		}
	}
	list := children[root]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// parentOf reads the fourth field of /proc/PID/stat, behind a name that may hold anything (proc_pid_stat(5)).
func parentOf(pid string) int {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// Seal keeps other processes of the same user, programs that this one has started among them, from reading its memory and its environment
// (/proc/PID/mem, /proc/PID/environ) and from tracing it. The kernel writes no core of the process then, and debuggers cannot attach
// without privileges. A program that this one starts is not sealed.
func Seal() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

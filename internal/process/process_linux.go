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

// becomeSubreaper makes this process the parent of orphaned descendants (subreaper).
func becomeSubreaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// killTime limits killRest: a process in uninterruptible sleep, such as on a hanging disk, may remain.
const killTime = 5 * time.Second

// killRest kills all descendants repeatedly until there are none, because they may start others meanwhile.
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

// descendants returns the descendants of a process.
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

// parentOf parses the fourth field of /proc/PID/stat, after a name that may contain any characters (proc_pid_stat(5)).
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

// Seal prevents other processes of the same user, including child processes, from reading this process's memory and
// environment (/proc/PID/mem, /proc/PID/environ) and from tracing it. The kernel then writes no core dumps, and
// debuggers need privileges to attach. Programs that this process starts are not sealed.
func Seal() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

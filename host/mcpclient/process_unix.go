//go:build unix

package mcpclient

import (
	"os"
	"os/exec"
	"syscall"
)

// separate makes the program the first of a group of processes.
func separate(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The errors say that nobody is left.
func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
func killGroup(p *os.Process)      { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

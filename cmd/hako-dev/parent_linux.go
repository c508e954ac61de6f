package main

import (
	"os/exec"
	"syscall"
)

// endWithParent has the system end the command when this process is killed.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

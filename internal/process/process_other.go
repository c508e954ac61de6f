//go:build !unix

package process

import (
	"os"
	"os/exec"
)

const supervised = false

func separate(*exec.Cmd) {}

// TerminateGroup kills the process, because there is no termination signal.
func TerminateGroup(p *os.Process) { KillGroup(p) }

// KillGroup kills the process.
func KillGroup(p *os.Process) { _ = p.Kill() }

func supervise(string, []string) int { return 1 }

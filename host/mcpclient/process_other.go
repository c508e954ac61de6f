//go:build !unix

package mcpclient

import (
	"os"
	"os/exec"
)

func separate(*exec.Cmd) {}

// There are no signals that ask: the program had its time when its input ended.
func terminateGroup(p *os.Process) { killGroup(p) }
func killGroup(p *os.Process)      { _ = p.Kill() }

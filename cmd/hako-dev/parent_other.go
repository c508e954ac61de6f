//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: only Linux ends a command with its parent.
func endWithParent(*exec.Cmd) {}

package main

import "os"

// terminate ends a process. Windows has no order that a process could obey.
func terminate(p *os.Process) error { return p.Kill() }

// interruptedByTerminal reports true: a console sends Ctrl-C to all its processes, so also to hako.
func interruptedByTerminal() bool { return true }

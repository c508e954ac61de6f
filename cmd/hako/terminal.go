package main

import (
	"os"

	"golang.org/x/term"

	"github.com/hako-run/hako/host/frontend/terminal"
)

// terminal is the terminal that this process runs at, if any.
func (a *app) terminal() terminal.IO {
	return terminal.IO{In: a.stdin, Out: a.stdout, Err: a.stderr, Interactive: a.interactive()}
}

// agrees asks the user a question that is answered with y or n.
func (a *app) agrees(question string) bool { return a.terminal().Agrees(question) }

// interactive reports whether a person sits at the terminal.
func (a *app) interactive() bool {
	if a.person != nil {
		return *a.person
	}
	file, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

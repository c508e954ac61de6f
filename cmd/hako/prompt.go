package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/hako-run/hako/host/approval"
)

// asker asks the person at the terminal. It is nil where there is none.
func (a *app) asker(locale string) func(context.Context, *approval.Question) (bool, error) {
	if !a.interactive() {
		return nil
	}
	return func(ctx context.Context, q *approval.Question) (bool, error) {
		fmt.Fprintf(a.stderr, "\n%s\n%s ", q.Text(locale), map[bool]string{true: "許可する場合は yes と入力してください:", false: "Type yes to allow it:"}[strings.HasPrefix(locale, "ja")])
		lines := make(chan string, 1)
		go func() { // ends with the process if nothing is typed
			line, _ := bufio.NewReader(a.stdin).ReadString('\n')
			lines <- line
		}()
		select {
		case line := <-lines:
			return saysYes(line), nil
		case <-ctx.Done():
			fmt.Fprintln(a.stderr)
			return false, ctx.Err()
		}
	}
}

func saysYes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "はい":
		return true
	}
	return false
}

// interactive reports whether a person sits at the terminal.
func (a *app) interactive() bool {
	if a.person != nil {
		return *a.person
	}
	file, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

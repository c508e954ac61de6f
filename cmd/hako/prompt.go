package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/hako-run/hako/host/approval"
)

// asker asks the person at the terminal. It is nil where there is none.
func (a *app) asker(locale string) func(context.Context, *approval.Question) (bool, error) {
	if !a.interactive() {
		return nil
	}
	var mu sync.Mutex // one question at a time
	var typed *lines
	return func(ctx context.Context, q *approval.Question) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if typed == nil {
			typed = newLines(a.stdin)
		} else {
			typed.drop() // it was for an earlier question, which has ended
		}
		return askLine(ctx, a.stderr, q, locale, typed.next)
	}
}

// askLine asks the question on out, and reads the answer from next.
func askLine(ctx context.Context, out io.Writer, q *approval.Question, locale string, next func(context.Context) (string, error)) (bool, error) {
	prompt := "Type yes to allow it:"
	if strings.HasPrefix(locale, "ja") {
		prompt = "許可する場合は yes と入力してください:"
	}
	fmt.Fprintf(out, "\n%s\n%s ", q.Text(locale), prompt)
	line, err := next(ctx)
	if err != nil {
		fmt.Fprintln(out)
		return false, ctx.Err() // the end of the input is a no
	}
	return saysYes(line), nil
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

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/elicitation"
)

// way is how the person at the terminal is asked. It is none where there is nobody.
func (a *app) way(locale string) (way approval.Prompter) {
	if !a.interactive() {
		return way
	}
	var mu sync.Mutex // one question at a time
	var typed *lines
	begin := func() (end func()) {
		mu.Lock()
		if typed == nil {
			typed = newLines(a.stdin)
		} else {
			typed.drop() // it was for an earlier question, which has ended
		}
		return mu.Unlock
	}
	way.Ask = func(ctx context.Context, q *approval.Question) (bool, error) {
		defer begin()()
		return askLine(ctx, a.stderr, q, locale, typed.next)
	}
	way.Fill = func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
		defer begin()()
		return fillLines(ctx, a.stderr, q, locale, typed.next)
	}
	return way
}

// askLine asks the question on out, and reads the answer from next.
func askLine(ctx context.Context, out io.Writer, q *approval.Question, locale string,
	next func(context.Context) (string, error)) (bool, error) {
	prompt := "Type yes to allow it:"
	if strings.HasPrefix(locale, "ja") {
		prompt = "許可する場合は yes と入力してください:"
	}
	printf(out, "\n%s\n%s ", block(q.Text(locale)), prompt)
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

// agrees asks for a yes. Whatever is no clear yes is a no.
func (a *app) agrees(question string) bool {
	printf(a.stdout, "%s [y/N] ", block(question))
	answer, err := bufio.NewReader(io.LimitReader(a.stdin, 100)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.stdout)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
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

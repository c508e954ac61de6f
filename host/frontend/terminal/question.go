package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/internal/lang"
)

// IO is a terminal, or the streams of a process without one.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	// Interactive reports whether a person sits at In.
	Interactive bool
}

// Prompter asks the person at the terminal, one question at a time. It is zero if there is none.
func (t IO) Prompter(locale string) (p approval.Prompter) {
	if !t.Interactive {
		return p
	}
	var mu sync.Mutex // one question at a time
	var typed *Lines
	begin := func() (end func()) {
		mu.Lock()
		if typed == nil {
			typed = newLines(t.In)
		} else {
			typed.drop() // it was for an earlier question, which has ended
		}
		return mu.Unlock
	}
	p.Ask = func(ctx context.Context, q *approval.Question) (bool, error) {
		defer begin()()
		return askLine(ctx, t.Err, q, locale, typed.next)
	}
	p.Fill = func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
		defer begin()()
		return fillForm(ctx, t.Err, q, locale, typed.next)
	}
	return p
}

// askLine shows the question on out and reads the answer from next.
func askLine(ctx context.Context, out io.Writer, q *approval.Question, locale string,
	next func(context.Context) (string, error)) (bool, error) {
	prompt := "Type yes to allow it:"
	if lang.Japanese(locale) {
		prompt = "許可する場合は yes と入力してください:"
	}
	Printf(out, "\n%s\n%s ", Block(q.Text(locale)), prompt)
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

func saysNo(word string) bool {
	switch strings.ToLower(word) {
	case "n", "no", "いいえ":
		return true
	}
	return false
}

// Agrees asks a question that the person answers with y or yes. Everything else is a no.
func (t IO) Agrees(question string) bool {
	Printf(t.Out, "%s [y/N] ", Block(question))
	answer, err := bufio.NewReader(io.LimitReader(t.In, 100)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(t.Out)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

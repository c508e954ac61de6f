package terminal

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/internal/lang"
)

// Watcher shows the questions of a queue to an operator, and passes on answers. Each question has a number by which it
// is answered, so that an answer is for the question that was meant even if others come and go while it is typed.
type Watcher struct {
	IO
	Approvals *approval.Queue
	Locale    string
	// Answer answers a question.
	Answer func(ctx context.Context, q *approval.Question, yes bool) error

	id string
	// shown are the waiting questions by number; last is the last number.
	shown map[int]*approval.Question
	last  int
}

// watchPoll is the interval at which the watcher checks for questions and renews its registration.
const watchPoll = time.Second

// Run watches until ctx ends, or the operator's input does.
func (w *Watcher) Run(ctx context.Context) (err error) {
	w.id, w.shown = rand.Text(), map[int]*approval.Question{}
	defer func() { err = errors.Join(err, w.Approvals.RemoveWatcher(context.WithoutCancel(ctx), w.id)) }()
	var typed <-chan string
	if w.Interactive {
		typed = newLines(w.In).Typed
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	Printf(w.Err, w.in("Watching. Ctrl-C ends it.\n", "質問を待っています。終了するには Ctrl-C を押してください。\n"))
	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := w.look(ctx); err != nil {
				return err
			}
		case line, ok := <-typed:
			if !ok {
				return nil
			}
			w.answer(ctx, line)
		case <-ctx.Done():
			return nil
		}
	}
}

// look prints new questions, and those that wait no more.
func (w *Watcher) look(ctx context.Context) error {
	if err := w.Approvals.Heartbeat(ctx, w.id); err != nil {
		return ignoreEnd(ctx, err)
	}
	waiting, err := w.Approvals.Waiting(ctx, nil)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	for _, number := range slices.Sorted(maps.Keys(w.shown)) {
		if !slices.ContainsFunc(waiting, func(q *approval.Question) bool { return q.ID == w.shown[number].ID }) {
			Printf(w.Out, w.in("[%d] is no longer pending\n", "[%d] 回答は不要になりました\n"), number)
			delete(w.shown, number)
		}
	}
	for _, q := range waiting {
		if !w.knows(q.ID) {
			w.show(q)
		}
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (w *Watcher) knows(id string) bool {
	for _, q := range w.shown {
		if q.ID == id {
			return true
		}
	}
	return false
}

func (w *Watcher) show(q *approval.Question) {
	w.last++
	w.shown[w.last] = q
	Printf(w.Out, w.in("\n[%d] %s, %s left\n%s\n", "\n[%d] %s、残り %s\n%s\n"), w.last, q.ID, TimeLeft(q),
		Block(q.Text(w.Locale)))
	if w.Interactive {
		Printf(w.Out, w.in("yes %d or no %d?\n", "許可する場合は yes %d、拒否する場合は no %d と入力してください:\n"), w.last, w.last)
	}
}

// answer executes a line such as "yes 3".
func (w *Watcher) answer(ctx context.Context, line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, err := strconv.Atoi(strings.TrimSpace(rest))
	q := w.shown[number]
	if err != nil || q == nil || !saysYes(word) && !saysNo(word) {
		Printf(w.Out, w.in("Type yes or no with the number of a pending question, such as: yes 1\n",
			"yes か no に続けて、回答を待っている質問の番号を入力してください (例: yes 1)\n"))
		return
	}
	delete(w.shown, number)
	if err := w.Answer(ctx, q, saysYes(word)); err != nil {
		Printf(w.Out, "%s\n", err)
	}
}

// in returns the format for the reader's language.
func (w *Watcher) in(english, japanese string) string {
	if lang.Japanese(w.Locale) {
		return japanese
	}
	return english
}

// TimeLeft returns the time that a question still waits.
func TimeLeft(q *approval.Question) time.Duration { return time.Until(q.Expires).Round(time.Second) }

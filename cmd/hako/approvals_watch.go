package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/internal/config"
)

func (a *app) approvalsWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Print questions as they come, and answer them",
		Long: `Print questions as they come. At a terminal, "yes 3" or "no 3" answers the question with that number. While this runs, hako serve asks
operators where the policy wants a person's yes and the caller cannot give it. Ctrl-C ends it.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withApprovals(cmd, func(c *config.Config, approvals *approval.Queue) error {
				w := &watcher{app: a, config: c, approvals: approvals, id: rand.Text(),
					shown: map[int]*approval.Question{}}
				return w.run(cmd.Context())
			})
		},
	}
}

// watcher shows questions to an operator. Each has a number, by which it is answered: an answer that is typed while one
// question goes and another comes is then for the one that was meant.
type watcher struct {
	app       *app
	config    *config.Config
	approvals *approval.Queue
	id        string
	// shown are the questions that wait, by number; last is the last number.
	shown map[int]*approval.Question
	last  int
}

// watchPoll is how often the watcher looks, and says that it is there.
const watchPoll = time.Second

// run watches until ctx ends, or the operator's input does.
func (w *watcher) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, w.approvals.RemoveWatcher(context.WithoutCancel(ctx), w.id)) }()
	var typed <-chan string
	if w.app.interactive() {
		typed = newLines(w.app.stdin).typed
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w.app.stderr, "Watching. Ctrl-C ends it.")
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

// look prints what is new, and what waits no more.
func (w *watcher) look(ctx context.Context) error {
	if err := w.approvals.Heartbeat(ctx, w.id); err != nil {
		return ignoreEnd(ctx, err)
	}
	waiting, err := w.approvals.Waiting(ctx, nil)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	for _, number := range slices.Sorted(maps.Keys(w.shown)) {
		if !slices.ContainsFunc(waiting, func(q *approval.Question) bool { return q.ID == w.shown[number].ID }) {
			printf(w.app.stdout, "[%d] waits no more\n", number)
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

func (w *watcher) knows(id string) bool {
	for _, q := range w.shown {
		if q.ID == id {
			return true
		}
	}
	return false
}

func (w *watcher) show(q *approval.Question) {
	w.last++
	w.shown[w.last] = q
	printf(w.app.stdout, "\n[%d] %s, %s left\n%s\n", w.last, q.ID, timeLeft(q), block(q.Text(w.config.Locale)))
	if w.app.interactive() {
		printf(w.app.stdout, "yes %d or no %d?\n", w.last, w.last)
	}
}

// answer takes a line such as "yes 3".
func (w *watcher) answer(ctx context.Context, line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, err := strconv.Atoi(strings.TrimSpace(rest))
	q := w.shown[number]
	if err != nil || q == nil || !saysYes(word) && !saysNo(word) {
		fmt.Fprintln(w.app.stdout, "Say yes or no with the number of a question that waits, such as: yes 1")
		return
	}
	delete(w.shown, number)
	if err := w.app.answer(ctx, w.config, w.approvals, q, saysYes(word)); err != nil {
		printf(w.app.stdout, "%s\n", err)
	}
}

func saysNo(word string) bool {
	switch strings.ToLower(word) {
	case "n", "no", "いいえ":
		return true
	}
	return false
}

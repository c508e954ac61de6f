package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/approval"
)

// watchEvery is how often the console looks for changes that nobody tells it of, such as questions of other processes,
// while somebody watches.
const watchEvery = 2 * time.Second

// attendEvery is how often the console renews its heartbeat, which is valid for approval.HeartbeatTTL.
const attendEvery = approval.HeartbeatTTL / 2

// watcher looks for changes, for those who watch.
type watcher struct {
	console *Console
	// id is what the approvals knows somebody who attends by. attends says that it does.
	id       string
	attends  bool
	attended time.Time
	// questions and plugins stand for what there was at the last look; empty before the first, after which everybody is
	// told: what has changed since they opened the page is not known.
	questions, plugins string
}

func (w *watcher) look(ctx context.Context) {
	hub := w.console.options.Traffic.hub
	answering := false
	hub.each(func(s *stream) { answering = answering || s.session.Role.includes(Approver) })
	w.attend(ctx, answering)
	if hub.count.Load() == 0 {
		w.questions, w.plugins = "", ""
		return
	}
	w.lookAtQuestions(ctx)
	if now := w.console.fingerprint(); now != w.plugins {
		hub.each(func(s *stream) { s.plugins.Store(true) })
		w.plugins = now
	}
}

// attend tells the approvals that somebody is there to answer questions, as long as that is so.
func (w *watcher) attend(ctx context.Context, answering bool) {
	approvals := w.console.options.Approvals
	if w.id == "" {
		w.id = "console-" + rand.Text()
	}
	now := w.console.now()
	var err error
	switch {
	case answering && w.attends && now.Sub(w.attended) < attendEvery:
		return
	case answering:
		w.attended = now
		err = approvals.Heartbeat(ctx, w.id)
	case w.attends:
		err = approvals.RemoveWatcher(ctx, w.id)
	}
	if err != nil && ctx.Err() == nil {
		w.console.logger.Warn("say who attends to questions", "err", err)
	}
	w.attends = answering
}

func (w *watcher) lookAtQuestions(ctx context.Context) {
	list, err := w.console.options.Approvals.Waiting(ctx, nil)
	if err != nil {
		return // the overview says so
	}
	var ids []string
	for _, q := range list {
		ids = append(ids, q.ID)
	}
	slices.Sort(ids)
	if now := "questions " + strings.Join(ids, " "); now != w.questions {
		w.console.options.Traffic.hub.each(func(s *stream) { s.approvals.Store(int64(len(list)) + 1) })
		w.questions = now
	}
}

// fingerprint stands for the state of plugins and tools.
func (c *Console) fingerprint() string {
	var text strings.Builder
	for _, p := range c.options.Host.Plugins() {
		fmt.Fprintln(&text, p.Name, p.State, p.Digest, p.Serving)
	}
	fmt.Fprint(&text, len(c.options.Host.Catalog().View().Tools))
	return text.String()
}

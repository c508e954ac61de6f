package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
)

// watchEvery is the interval of checks for changes without notifications, such as questions of other processes, while a
// stream is open.
const watchEvery = 2 * time.Second

// attendEvery is the interval of the console's heartbeat, which is valid for approval.HeartbeatTTL.
const attendEvery = approval.HeartbeatTTL / 2

// watcher looks for changes for the open streams.
type watcher struct {
	console *Console
	// id identifies the console in heartbeats. attends reports whether it sends them.
	id       string
	attends  bool
	attended time.Time
	// questions and plugins are fingerprints of the last check. They are empty before the first one, after which all
	// streams are notified, because changes since their pages were loaded are unknown.
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

// attend sends heartbeats, so that questions can be asked, while somebody who may answer has the console open.
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
		w.console.logger.Warn("send the console's heartbeat", "err", err)
	}
	w.attends = answering
}

func (w *watcher) lookAtQuestions(ctx context.Context) {
	list, err := w.console.options.Approvals.Waiting(ctx, nil)
	if err != nil {
		return // the overview shows it
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

// fingerprint identifies the state of plugins and tools.
func (c *Console) fingerprint() string {
	var text strings.Builder
	for _, p := range c.options.Host.Plugins() {
		fmt.Fprintln(&text, p.Name, p.State, p.Digest, p.Serving)
	}
	fmt.Fprint(&text, len(c.options.Host.Catalog().View().Tools))
	return text.String()
}

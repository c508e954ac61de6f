package slackbot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// lanes keep the turns of a conversation one after the other, and bound how many run at once.
type lanes struct {
	slots chan struct{}

	mu      sync.Mutex // guards what follows
	closed  bool
	waiting map[string][]*message // by conversation; one with a key has a goroutine
	running map[string]*turn      // by conversation
}

// enqueue answers m when its turn comes. Messages that wait are answered in the order they were written in.
func (b *Bot) enqueue(m *message) {
	l, key := &b.lanes, m.conversation()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // the journal keeps it for whoever comes next
	}
	queue, busy := l.waiting[key]
	at, _ := slices.BinarySearchFunc(queue, m.TS, func(other *message, ts string) int { return cmp.Compare(other.TS, ts) })
	l.waiting[key] = slices.Insert(queue, at, m)
	if !busy {
		b.work.Go(func() { b.lane(key) })
	}
}

// lane answers what waits in a conversation until nothing does.
func (b *Bot) lane(key string) {
	for {
		select {
		case b.lanes.slots <- struct{}{}:
		case <-b.ctx.Done():
			return
		}
		m := b.lanes.next(key)
		if m != nil && b.ctx.Err() == nil {
			b.answer(m)
		}
		<-b.lanes.slots
		if m == nil {
			return
		}
	}
}

// next takes the first message that waits; nil if none does.
func (l *lanes) next(key string) *message {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[key]
	if len(queue) == 0 {
		delete(l.waiting, key)
		return nil
	}
	l.waiting[key] = queue[1:]
	return queue[0]
}

// close takes nothing more.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *lanes) set(key string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[key] = t
}

func (l *lanes) clear(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, key)
}

// turn returns the one that runs in a conversation, or nil.
func (l *lanes) turn(key string) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[key]
}

// stoppedError is why a turn was cancelled.
type stoppedError struct{ by string }

func (e *stoppedError) Error() string { return "stopped by " + e.by }

// stop stops the turn that runs in a conversation, here or in another process, and reports whether there is one.
func (b *Bot) stop(key, user string) bool {
	if t := b.lanes.turn(key); t != nil {
		t.cancel(&stoppedError{user})
		return true
	}
	running, err := b.journal.stop(b.ctx, key, user)
	if err != nil {
		b.options.Logger.Error("a turn could not be stopped", "err", err)
	}
	return running
}

// inChannel lists the turns that run in a channel, in this process.
func (b *Bot) inChannel(team, channel string) []*turn {
	b.lanes.mu.Lock()
	defer b.lanes.mu.Unlock()
	var list []*turn
	for key, t := range b.lanes.running {
		if strings.HasPrefix(key, team+":"+channel+":") {
			list = append(list, t)
		}
	}
	return list
}

// How often tend looks.
const (
	stopPoll   = time.Second
	lostPoll   = 30 * time.Second
	forgetPoll = time.Hour
)

// tend looks after the journal until ctx ends: what other processes want stopped, what those that died have left, and what is old.
func (b *Bot) tend(ctx context.Context) error {
	defer b.lanes.close()
	stops, losses, old := time.NewTicker(stopPoll), time.NewTicker(lostPoll), time.NewTicker(forgetPoll)
	defer stops.Stop()
	defer losses.Stop()
	defer old.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-stops.C:
			err = b.stopOthers(ctx)
		case <-losses.C:
			for _, w := range b.workspaces {
				if w.account.Load() != nil {
					b.recoverLost(ctx, w)
				}
			}
		case <-old.C:
			err = b.journal.forget(ctx)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			b.options.Logger.Error("the store cannot be used", "err", err)
		}
	}
}

// stopOthers stops the turns of this process that were stopped at another.
func (b *Bot) stopOthers(ctx context.Context) error {
	b.lanes.mu.Lock()
	idle := len(b.lanes.running) == 0
	b.lanes.mu.Unlock()
	if idle {
		return nil
	}
	stops, err := b.journal.stops(ctx)
	for key, user := range stops {
		if t := b.lanes.turn(key); t != nil {
			t.cancel(&stoppedError{user})
		}
	}
	return err
}

// recoverLost takes over what processes that died have left in a workspace: what they had not begun is answered, and what they had gets an
// honest end.
func (b *Bot) recoverLost(ctx context.Context, w *workspace) {
	found, err := b.journal.adopt(ctx, w.Name)
	if err != nil {
		w.logger.Error("what another process left open is not known", "err", err)
		return
	}
	for _, m := range found.waiting {
		b.enqueue(m)
	}
	for i, m := range found.running {
		b.work.Go(func() { w.endLost(ctx, m, found.answers[i]) })
	}
	for _, p := range found.questions {
		b.work.Go(func() { b.adoptQuestion(ctx, w, p) })
	}
}

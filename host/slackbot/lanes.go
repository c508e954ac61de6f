package slackbot

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	at, _ := slices.BinarySearchFunc(queue, m.TS,
		func(other *message, ts string) int { return cmp.Compare(other.TS, ts) })
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
		free := sync.OnceFunc(func() { <-b.lanes.slots })
		m := b.lanes.next(key)
		if m != nil && b.ctx.Err() == nil {
			b.answer(m, free)
		}
		free()
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

// stop stops what runs in a conversation: here at once, and in other processes, of which one may be at a message that
// came before.
func (b *Bot) stop(key, user string) {
	if t := b.lanes.turn(key); t != nil {
		t.cancel(&stoppedError{user})
	}
	if err := b.journal.stop(b.ctx, key, user); err != nil {
		b.options.Logger.Error("a turn that another process may run could not be stopped", "err", err)
	}
}

// errTakenOver is why a turn ends here without a word: another process has taken it over, or may have.
var errTakenOver = errors.New("the store has lost this process's lock, and another process ends what was under way")

// abandon cancels what runs, and forgets what waits: other processes take it over.
func (l *lanes) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.running {
		t.cancel(errTakenOver)
	}
	for key := range l.waiting {
		l.waiting[key] = nil // the goroutine of the key finds nothing more
	}
}

// stayAlive keeps this process the owner of what it does, until ctx ends. When the store has lost the lock that says
// so, all that is under way ends here without a word, for another process may have ended it already, and the process
// goes on under a new name.
func (b *Bot) stayAlive(ctx context.Context, held context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-held.Done():
		}
		b.options.Logger.Error("the store has lost the lock of this process: what was under way in Slack is left to others")
		b.journal.end()
		b.lanes.abandon()
		for err := errDead; err != nil; {
			select {
			case <-time.After(startPause):
			case <-ctx.Done():
				return nil
			}
			held, err = b.journal.live(ctx)
		}
	}
}

// How often tend looks.
const (
	stopPoll = time.Second
)

// lostPoll is how often it is looked for what others have left, and tried again to end what broke off. Tests change it.
var lostPoll = 30 * time.Second

// tend looks after the journal until ctx ends: what other processes want stopped, and what those that died have left.
func (b *Bot) tend(ctx context.Context) error {
	defer b.lanes.close()
	wanted := b.options.Store.Changes(ctx, stopTopic)
	stops, losses := time.NewTicker(stopPoll), time.NewTicker(lostPoll)
	defer stops.Stop()
	defer losses.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-wanted:
			err = b.stopOthers(ctx)
		case <-stops.C: // a turn may not have been there yet when that changed
			err = b.stopOthers(ctx)
		case <-losses.C:
			for _, w := range b.workspaces {
				if w.account.Load() != nil && b.retired.Err() == nil {
					b.recoverLost(ctx, w)
				}
			}
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

// recoverLost takes over what processes that died have left in a workspace: what they had not begun is answered, and
// what they had gets an honest end.
func (b *Bot) recoverLost(ctx context.Context, w *workspace) {
	found, err := b.journal.adopt(ctx, w.Name)
	if err != nil {
		w.logger.Error("what another process left open is not known", "err", err)
		return
	}
	for _, err := range found.unread {
		w.logger.Error("what another process left open cannot be taken over", "err", err)
	}
	for _, m := range found.waiting {
		b.enqueue(m)
	}
	for _, t := range found.broken {
		b.work.Go(func() {
			if !w.endLost(ctx, t) {
				w.endLater(t)
			}
		})
	}
	for _, p := range found.questions {
		b.work.Go(func() { b.adoptQuestion(ctx, w, p) })
	}
}

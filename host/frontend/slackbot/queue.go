package slackbot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// queues run the turns of a conversation one after the other, and bound the concurrent turns.
type queues struct {
	slots chan struct{}

	mu      sync.Mutex // guards the fields below
	closed  bool
	waiting map[string][]*message // by conversation; each key has a goroutine
	running map[string]*turn      // by conversation
}

// enqueue queues m behind the earlier messages of its conversation.
func (b *Bot) enqueue(m *message) {
	q, key := &b.queues, m.conversation()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return // another process takes it over from the journal
	}
	queue, busy := q.waiting[key]
	at, _ := slices.BinarySearchFunc(queue, m.TS,
		func(other *message, ts string) int { return cmp.Compare(other.TS, ts) })
	q.waiting[key] = slices.Insert(queue, at, m)
	if !busy {
		b.work.Go(func() { b.answerQueue(key) })
	}
}

// answerQueue answers the queued messages of a conversation.
func (b *Bot) answerQueue(key string) {
	for {
		select {
		case b.queues.slots <- struct{}{}:
		case <-b.ctx.Done():
			return
		}
		free := sync.OnceFunc(func() { <-b.queues.slots })
		m := b.queues.next(key)
		if m != nil && b.ctx.Err() == nil {
			b.answer(m, free)
		}
		free()
		if m == nil {
			return
		}
	}
}

// next removes the first queued message, or returns nil.
func (q *queues) next(key string) *message {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.waiting[key]
	if len(queue) == 0 {
		delete(q.waiting, key)
		return nil
	}
	q.waiting[key] = queue[1:]
	return queue[0]
}

// close refuses further messages.
func (q *queues) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func (q *queues) set(key string, t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running[key] = t
}

func (q *queues) clear(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, key)
}

// turn returns the running turn of a conversation, or nil.
func (q *queues) turn(key string) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running[key]
}

// stoppedError is the cause of a turn's cancellation by a person.
type stoppedError struct{ by string }

func (e *stoppedError) Error() string { return "stopped by " + e.by }

// stop stops the running turn of a conversation: here at once, and also in other processes, which may run the turn of
// an earlier message.
func (b *Bot) stop(key, user string) {
	if t := b.queues.turn(key); t != nil {
		t.cancel(&stoppedError{user})
	}
	if err := b.journal.stop(b.ctx, key, user); err != nil {
		b.options.Logger.Error("stopping a turn of another process failed", "err", err)
	}
}

// errTakenOver ends a turn silently: another process has taken it over, or may have.
var errTakenOver = errors.New("the store lost this process's lock: another process takes over its turns")

// abandon cancels the running turns and forgets the queued messages, which other processes take over.
func (q *queues) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.running {
		t.cancel(errTakenOver)
	}
	for key := range q.waiting {
		q.waiting[key] = nil // the goroutine of the key finds no more messages
	}
}

// stayAlive keeps this process the owner of its rows until ctx ends. If the store has lost its lock, all turns end
// silently, because another process may have taken them over, and the process continues under a new name.
func (b *Bot) stayAlive(ctx context.Context, held context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-held.Done():
		}
		b.options.Logger.Error("the store lost this process's lock: " +
			"other processes take over its turns in Slack")
		b.journal.end()
		b.queues.abandon()
		for {
			select {
			case <-time.After(startPause):
			case <-ctx.Done():
				return nil
			}
			var err error
			if held, err = b.journal.live(ctx); err == nil {
				break
			}
		}
	}
}

// stopPoll is the interval of checks for turns that were stopped elsewhere.
const stopPoll = time.Second

// lostPoll is the interval of checks for dead processes, and of further attempts to end a broken answer. Tests change
// it.
var lostPoll = 30 * time.Second

// maintain watches the journal until ctx ends: it stops turns that were stopped elsewhere, and takes over those of dead
// processes.
func (b *Bot) maintain(ctx context.Context) error {
	defer b.queues.close()
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

// stopOthers stops the turns of this process that were stopped in another process.
func (b *Bot) stopOthers(ctx context.Context) error {
	b.queues.mu.Lock()
	idle := len(b.queues.running) == 0
	b.queues.mu.Unlock()
	if idle {
		return nil
	}
	stops, err := b.journal.stops(ctx)
	for key, user := range stops {
		if t := b.queues.turn(key); t != nil {
			t.cancel(&stoppedError{user})
		}
	}
	return err
}

// recoverLost takes over the turns of dead processes in a workspace. It answers messages whose turn had not begun, and
// ends the answers of the others.
func (b *Bot) recoverLost(ctx context.Context, w *workspace) {
	found, err := b.journal.takeOver(ctx, w.Name)
	if err != nil {
		w.logger.Error("looking up the turns of dead processes failed", "err", err)
		return
	}
	for _, err := range found.unread {
		w.logger.Error("a turn of a dead process could not be taken over", "err", err)
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
		b.work.Go(func() { b.takeOverQuestion(ctx, w, p) })
	}
}

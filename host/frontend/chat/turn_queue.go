package chat

import (
	"context"
	"slices"
	"sync"
)

// turnQueues serialize the turns of each conversation in order of arrival. The zero value is ready for use.
type turnQueues struct {
	mu sync.Mutex
	// waiting has the queue of each conversation. The first turn is running. The channel of a waiting turn is closed
	// when it may run.
	waiting map[place][]chan struct{}
}

// place identifies a conversation.
type place struct{ tenant, id string }

// enter waits until the caller may run in p; leave lets the next one run. It fails with errLine if more than most turns
// are queued, or with ctx's error. wait is called before waiting.
func (l *turnQueues) enter(ctx context.Context, p place, most int, wait func()) (leave func(), err error) {
	mine := make(chan struct{})
	l.mu.Lock()
	if l.waiting == nil {
		l.waiting = map[place][]chan struct{}{}
	}
	ahead := len(l.waiting[p])
	if ahead > most {
		l.mu.Unlock()
		return nil, errLine
	}
	l.waiting[p] = append(l.waiting[p], mine)
	l.mu.Unlock()
	leave = sync.OnceFunc(func() { l.dequeue(p, mine) })
	if ahead == 0 {
		return leave, nil
	}
	wait()
	select {
	case <-mine:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// dequeue removes mine from its queue, and lets the next turn run if mine was the first.
func (l *turnQueues) dequeue(p place, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[p]
	i := slices.Index(line, mine)
	line = slices.Delete(line, i, i+1)
	l.waiting[p] = line
	switch {
	case len(line) == 0:
		delete(l.waiting, p)
	case i == 0:
		close(line[0])
	}
}

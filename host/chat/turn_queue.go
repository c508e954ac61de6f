package chat

import (
	"context"
	"slices"
	"sync"
)

// lines let the turns of each conversation go one after the other, in the order in which they came.
type lines struct {
	mu sync.Mutex
	// waiting holds those who have come and not left, by conversation: the first one is on. Each channel is closed when it is its turn.
	waiting map[place][]chan struct{}
}

// place is a conversation.
type place struct{ tenant, id string }

// enter waits until it is the caller's turn at p, and then returns how to leave. It fails with errLine if there are more than most
// already, or with ctx's error. wait is called if there is somebody to wait for.
func (l *lines) enter(ctx context.Context, p place, most int, wait func()) (leave func(), err error) {
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
	leave = sync.OnceFunc(func() { l.leave(p, mine) })
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

// leave takes mine out of the line, and lets the next one go on if mine was the first.
func (l *lines) leave(p place, mine chan struct{}) {
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

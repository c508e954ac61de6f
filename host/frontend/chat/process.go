package chat

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// process is this process's name among those that share the store. It holds a lock for the name, which shows the others
// that it is alive. If the lock is lost with the connection to the store, others may consider the process dead, so it
// acquires a new name as soon as possible.
type process struct {
	store  *store.Store
	ending context.Context
	end    context.CancelFunc
	again  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	called  string
	release func()
}

const (
	// joinTime bounds the attempt to acquire a name. Skipping a free name is harmless.
	joinTime = 10 * time.Millisecond
	// rejoinAfter is the pause between attempts to acquire a new name.
	rejoinAfter = time.Second
)

// join acquires the first name that no living process holds.
func join(ctx context.Context, s *store.Store) (*process, error) {
	p := &process{store: s}
	p.ending, p.end = context.WithCancel(context.Background())
	if err := p.acquireName(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) acquireName(ctx context.Context) error {
	for i := 1; ; i++ {
		name := strconv.Itoa(i)
		trying, cancel := context.WithTimeout(ctx, joinTime)
		held, release, err := p.store.Lock(trying, lockName(name))
		cancel()
		if err == nil {
			return p.setName(name, held, release)
		}
		if !errors.Is(err, store.ErrLocked) || ctx.Err() != nil {
			return err
		}
	}
}

// setName sets the acquired name, unless the process is being closed.
func (p *process) setName(name string, held context.Context, release func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ending.Err(); err != nil {
		release()
		return err
	}
	p.called, p.release = name, release
	p.again.Go(func() { p.reacquire(held) })
	return nil
}

// reacquire acquires a new name if the lock of the current one is lost.
func (p *process) reacquire(held context.Context) {
	<-held.Done()
	for errors.Is(context.Cause(held), store.ErrLockLost) {
		select {
		case <-p.ending.Done():
			return
		case <-time.After(rejoinAfter):
		}
		if p.acquireName(p.ending) == nil {
			return
		}
	}
}

// name returns the current name.
func (p *process) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.called
}

// close releases the name. No turn may be running.
func (p *process) close() {
	p.end()
	p.mu.Lock()
	p.release()
	p.mu.Unlock()
	p.again.Wait()
}

func lockName(process string) string { return "chat process " + process }

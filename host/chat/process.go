package chat

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// process is this process among those over the store. It holds the lock of its name, so that others see that it lives. If the store loses
// that lock, with the connection to it, others may take the process for dead: it takes a name anew, as soon as it can.
type process struct {
	store  *store.Store
	ending context.Context
	end    context.CancelFunc
	again  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	called  string
	release func()
}

// How long it is tried to take a name. A free one that is passed over when joining does no harm.
const (
	joinTime = 10 * time.Millisecond
	buryTime = 250 * time.Millisecond
	// rejoinAfter is the pause before a name is taken anew.
	rejoinAfter = time.Second
)

// join takes the first name that no living process has. Whoever had it before is dead.
func join(ctx context.Context, s *store.Store) (*process, error) {
	p := &process{store: s}
	p.ending, p.end = context.WithCancel(context.Background())
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) take(ctx context.Context) error {
	for i := 1; ; i++ {
		name := strconv.Itoa(i)
		held, release, err := hold(ctx, p.store, name, joinTime)
		if err == nil {
			return p.be(name, held, release)
		}
		if !errors.Is(err, store.ErrLocked) || ctx.Err() != nil {
			return err
		}
	}
}

// be makes a name the process's own, unless that is leaving.
func (p *process) be(name string, held context.Context, release func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ending.Err(); err != nil {
		release()
		return err
	}
	p.called, p.release = name, release
	p.again.Go(func() { p.keep(held) })
	return nil
}

// keep takes a name anew if the lock of this one is lost.
func (p *process) keep(held context.Context) {
	<-held.Done()
	for errors.Is(context.Cause(held), store.ErrLockLost) {
		select {
		case <-p.ending.Done():
			return
		case <-time.After(rejoinAfter):
		}
		if p.take(p.ending) == nil {
			return
		}
	}
}

// name is the process's at present.
func (p *process) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.called
}

// leave gives the name up. No turn is under way any more.
func (p *process) leave() {
	p.end()
	p.mu.Lock()
	p.release()
	p.mu.Unlock()
	p.again.Wait()
}

// hold takes the name of a process, unless that is alive: then the error matches store.ErrLocked.
func hold(ctx context.Context, s *store.Store, name string, patience time.Duration) (held context.Context, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Lock(ctx, "chat process "+name)
}

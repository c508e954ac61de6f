package host

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// listingTime bounds an Extism guest's listing of its tools.
const listingTime = 10 * time.Second

// errAsked means that the guest has been asked for its tools and has not answered yet.
var errAsked = errors.New("its tools are being listed")

// listings runs Extism guests to list their tools. That runs their code and may take long, so h.scanning is not held.
type listings struct {
	// ctx ends when the host is closed.
	ctx    context.Context
	cancel context.CancelFunc
	// time bounds one guest.
	time   time.Duration
	asking sync.WaitGroup
	slots  chan struct{}
	// answered is signalled when there are new answers.
	answered chan struct{}

	// mu guards answers, by digest of module and configuration, until they are consumed.
	mu      sync.Mutex
	answers map[string]*answer
}

// answer is a guest's listing. It is set when done is closed.
type answer struct {
	done chan struct{}
	data []byte
	err  error
}

func newListings() *listings {
	ctx, cancel := context.WithCancel(context.Background())
	return &listings{
		ctx: ctx, cancel: cancel, time: listingTime, slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
		answered: make(chan struct{}, 1), answers: map[string]*answer{},
	}
}

// request returns and forgets the answer for key. Without one it starts ask in the background and returns errAsked.
func (l *listings) request(key string, ask func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.answers[key]; a != nil {
		select {
		case <-a.done:
			delete(l.answers, key)
			return a.data, a.err
		default:
			return nil, errAsked
		}
	}
	a := &answer{done: make(chan struct{})}
	l.answers[key] = a
	l.asking.Go(func() {
		l.slots <- struct{}{}
		a.data, a.err = ask(l.ctx)
		<-l.slots
		select {
		case l.answered <- struct{}{}:
		default:
		}
		close(a.done)
	})
	return nil, errAsked
}

// wait waits until all guests have answered. It reports false if there are no new answers or ctx has ended.
func (l *listings) wait(ctx context.Context) bool {
	for _, a := range l.open() {
		select {
		case <-a.done:
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-l.answered:
		return true
	default:
		return false
	}
}

// open returns the pending answers.
func (l *listings) open() []*answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*answer
	for _, a := range l.answers {
		select {
		case <-a.done:
		default:
			list = append(list, a)
		}
	}
	return list
}

// close stops running guests. No requests may follow.
func (l *listings) close() {
	l.cancel()
	l.asking.Wait()
}

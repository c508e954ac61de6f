package host

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// listingTime is how long an Extism guest may take to say what it offers.
const listingTime = 10 * time.Second

// errAsked says that a guest is still being asked what it offers.
var errAsked = errors.New("it is being asked what it offers")

// listings asks Extism guests what they offer. That runs their code and may take long, so it is done while h.scanning is free.
type listings struct {
	// ctx ends when the host is closed.
	ctx    context.Context
	cancel context.CancelFunc
	// time is how long a guest may take.
	time   time.Duration
	asking sync.WaitGroup
	slots  chan struct{}
	// answered has something when there are answers.
	answered chan struct{}

	// mu guards answers, which are by digest of module and configuration, until they are taken.
	mu      sync.Mutex
	answers map[string]*answer
}

// answer is what a guest said, once done is closed.
type answer struct {
	done chan struct{}
	data []byte
	err  error
}

func newListings() *listings {
	ctx, cancel := context.WithCancel(context.Background())
	return &listings{
		ctx: ctx, cancel: cancel, time: listingTime, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), answered: make(chan struct{}, 1), answers: map[string]*answer{},
	}
}

// take returns the answer to a question that has been asked, and forgets it. Otherwise it has the question asked and returns errAsked.
func (l *listings) take(key string, ask func(ctx context.Context) ([]byte, error)) ([]byte, error) {
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

// wait waits until all questions have been answered. It reports false if there are no new answers, or ctx has ended.
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

// open are the answers that are not there yet.
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

// close stops the guests that are being asked. No more may be.
func (l *listings) close() {
	l.cancel()
	l.asking.Wait()
}

package limits

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter counts what clients use. It is safe for concurrent use.
type Limiter struct {
	limits Limits

	// mu guards what follows.
	mu      sync.Mutex
	clients map[string]*client
	calls   int
	// streams are the open ones, oldest first.
	streams []*openListen
	// idle is closed when calls reaches zero, and nil while nobody waits for that.
	idle chan struct{}
	// sweepAt is the number of clients at which those that use nothing are forgotten.
	sweepAt int
}

// client counts the use of one client.
type client struct {
	rate           *rate.Limiter
	calls, streams int
}

// openListen is a subscription stream. end ends it.
type openListen struct {
	client *client
	end    func()
}

const minSweep = 4096

// New returns a Limiter. The limits must have their defaults filled in.
func New(limits Limits) *Limiter {
	return &Limiter{limits: limits, clients: map[string]*client{}, sweepAt: minSweep}
}

// Set applies other limits to later requests.
func (l *Limiter) Set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	for _, c := range l.clients {
		c.rate.SetLimit(rate.Limit(limits.Rate))
		c.rate.SetBurst(limits.Burst)
	}
}

// Allow counts n messages against the client's rate. Its error is a *BusyError.
func (l *Limiter) Allow(key string, n int) error {
	l.mu.Lock()
	c := l.client(key)
	l.mu.Unlock()
	reservation := c.rate.ReserveN(time.Now(), n)
	if !reservation.OK() {
		return &BusyError{
			Reason: fmt.Sprintf("%d messages at once exceed the limit of %d: send fewer", n, c.rate.Burst()),
			Retry:  time.Second,
		}
	}
	wait := reservation.Delay()
	if wait == 0 {
		return nil
	}
	reservation.Cancel()
	return &BusyError{
		Reason: fmt.Sprintf("too many requests: the limit is %.0f a second; try again in %s",
			float64(c.rate.Limit()), wait.Round(time.Millisecond)),
		Retry: wait,
	}
}

// Enter counts n requests in flight until leave is called, which it must be once. Its error is a *BusyError.
func (l *Limiter) Enter(key string, n int) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.client(key)
	switch {
	case l.calls+n > l.limits.Calls:
		return nil, &BusyError{
			Reason:   fmt.Sprintf("the server is busy: %d requests are in flight already; try again later", l.calls),
			Retry:    time.Second,
			Everyone: true,
		}
	case n > 1 && c.calls+n > l.limits.CallsPerClient:
		return nil, &BusyError{
			Reason: fmt.Sprintf("the batch has %d requests, and %d of yours are in flight: at most %d may be at once, "+
				"so send fewer; none of its messages were processed", n, c.calls, l.limits.CallsPerClient),
			Retry: time.Second,
		}
	case c.calls+n > l.limits.CallsPerClient:
		return nil, &BusyError{
			Reason: fmt.Sprintf("%d of your requests are in flight already: wait for some of them", c.calls),
			Retry:  time.Second,
		}
	}
	l.calls += n
	c.calls += n
	return func() { l.leave(c, n) }, nil
}

// EnterStream counts a subscription stream until leave is called, which it must be once. Its error is a *BusyError.
// When all streams are in use, the oldest of the client with most of them is ended for a client that has fewer; end is
// called for that, with locks held.
func (l *Limiter) EnterStream(key string, end func()) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.client(key)
	if c.streams >= l.limits.SessionsPerClient {
		return nil, &BusyError{
			Reason: fmt.Sprintf("%d of your streams are open already: close some of them", c.streams),
			Retry:  time.Minute,
		}
	}
	stream := &openListen{c, end}
	if len(l.streams) >= l.limits.Sessions && !l.endStreamFor(c) {
		return nil, &BusyError{
			Reason:   fmt.Sprintf("%d streams are open already; try again later", len(l.streams)),
			Retry:    time.Minute,
			Everyone: true,
		}
	}
	c.streams++
	l.streams = append(l.streams, stream)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.removeStream(stream)
	}, nil
}

// endStreamFor ends a stream of the client with most of them, and reports false if none has more than c would have.
func (l *Limiter) endStreamFor(c *client) bool {
	var oldest *openListen
	for _, stream := range l.streams {
		if oldest == nil || stream.client.streams > oldest.client.streams {
			oldest = stream
		}
	}
	if oldest == nil || oldest.client.streams <= c.streams+1 {
		return false
	}
	l.removeStream(oldest)
	oldest.end()
	return true
}

// removeStream forgets a stream if it is counted.
func (l *Limiter) removeStream(stream *openListen) {
	if i := slices.Index(l.streams, stream); i >= 0 {
		l.streams = slices.Delete(l.streams, i, i+1)
		stream.client.streams--
	}
}

func (l *Limiter) leave(c *client, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls -= n
	c.calls -= n
	if l.calls == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// client returns the client with this key. The caller holds mu.
func (l *Limiter) client(key string) *client {
	if c, ok := l.clients[key]; ok {
		return c
	}
	if len(l.clients) >= l.sweepAt {
		l.sweep()
	}
	c := &client{rate: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
	l.clients[key] = c
	return c
}

// sweep forgets clients that are indistinguishable from new ones.
func (l *Limiter) sweep() {
	for key, c := range l.clients {
		if c.calls == 0 && c.streams == 0 && c.rate.Tokens() >= float64(l.limits.Burst) {
			delete(l.clients, key)
		}
	}
	l.sweepAt = max(minSweep, 2*len(l.clients))
}

// Wait waits until no request is in flight or ctx is done; streams do not count.
func (l *Limiter) Wait(ctx context.Context) error {
	l.mu.Lock()
	if l.calls == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InUse returns how many requests are in flight, and how many streams are open.
func (l *Limiter) InUse() (calls, streams int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, len(l.streams)
}

package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/retry"
)

// Start is the time at which a server is connected.
type Start string

// Values of Start.
const (
	// Eager connects a server at once and keeps it connected.
	Eager Start = "eager"
	// Lazy connects a server for its first call, and to get its lists if the cache has none. It is disconnected when it
	// has not been used for IdleTimeout.
	Lazy Start = "lazy"
)

const (
	defaultIdle = 10 * time.Minute
	// startsAtOnce bounds the servers that are started at the same time without a waiting call. A server that takes
	// longer than slowStart does not count.
	startsAtOnce = 8
	slowStart    = 5 * time.Second
)

// errIdle ends the session of a lazy server that is not used.
var errIdle = errors.New("it is not used")

func (s *server) lazy() bool { return cmp.Or(s.spec.Start, s.options.Start) == Lazy }

func (s *server) idleTimeout() time.Duration { return cmp.Or(s.spec.IdleTimeout, defaultIdle) }

// restore offers the lists of the cache. If they are young enough, a lazy server begins idle.
func (s *server) restore() {
	content, current, err := s.cache.load()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errChanged) {
			s.logger.Warn("the cached lists of an upstream server are not used", "err",
				oneLineOf(cause.WithoutPath(err).Error()))
		}
		return
	}
	if s.spec.ProtocolVersion == "" {
		s.version = content.Protocol
	}
	l := &listing{tools: content.Tools, prompts: content.Prompts, resources: content.Resources,
		templates: content.Templates, cut: content.Cut}
	for _, kind := range content.Failed {
		l.failed = append(l.failed, failedList{kind, "it failed when the server was last connected"})
	}
	if _, err := s.present(l); err != nil {
		s.logger.Warn("the cached lists of an upstream server are not used", "err", oneLineOf(err.Error()))
		return
	}
	age := time.Since(current)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rested = s.lazy() && age >= 0 && age < cacheAge
	s.status.Cached = true
}

// use registers a call until done is called. A server that is used is not disconnected.
func (s *server) use() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
		s.lastUse = time.Now()
	}
}

// needed reports whether a call or a subscription waits for the server.
func (s *server) needed() bool {
	s.mu.Lock()
	waiting := s.waiting > 0
	s.mu.Unlock()
	return waiting || len(s.watches.uris()) > 0
}

// waitIdle marks the server as idle and waits until it is needed, at least for the delay. err is why its last session
// ended, or nil.
func (s *server) waitIdle(ctx context.Context, err error, delay time.Duration) error {
	s.idle(err)
	s.attempted()
	if err := retry.Wait(ctx, delay); err != nil {
		return err
	}
	for !s.needed() {
		select {
		case <-s.interest:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.starting()
	return nil
}

// acquireStart waits until the server may be started. release is called when it is connected or has failed.
func (s *server) acquireStart(ctx context.Context) (release func(), err error) {
	for !s.needed() {
		select {
		case s.starts <- struct{}{}:
			timer := time.AfterFunc(slowStart, func() { <-s.starts })
			return func() {
				if timer.Stop() {
					<-s.starts
				}
			}, nil
		case <-s.interest:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}

// releaseUnused unsets the session of a server that has not been used for IdleTimeout. Otherwise it returns after what
// time to try again.
func (s *server) releaseUnused(x *session) (again time.Duration) {
	watched := len(s.watches.uris()) > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active > 0 || watched {
		return s.idleTimeout()
	}
	if left := s.idleTimeout() - time.Since(s.lastUse); left > 0 {
		return left
	}
	if s.session == x {
		s.session, s.arrived = nil, make(chan struct{})
	}
	return 0
}

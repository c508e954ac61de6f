package store

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// clock is the server's, as it was at a moment of this machine's.
type clock struct{ set atomic.Pointer[clockReading] }

// clockReading is one look at two clocks. That of this machine is read on with its monotonic part, so that it does not matter if somebody
// sets it.
type clockReading struct{ server, local time.Time }

// Now returns the time in a transaction: over PostgreSQL the server's, so that replicas agree whatever their own clocks say. It is for
// what one replica writes and another compares, such as leases.
func (s *Store) Now(ctx context.Context, tx *sql.Tx) (time.Time, error) {
	before := time.Now()
	now, err := s.now(ctx, tx)
	if err == nil {
		s.clock.read(now, before, time.Since(before))
	}
	return now, err
}

// slowLook is how long an answer may take to say more than one that is there, which is wrong by half of that at most.
const slowLook = time.Second

// read takes a look at the server's clock that began at before and took so long.
func (c *clock) read(server, before time.Time, took time.Duration) {
	if took < slowLook || c.set.Load() == nil {
		c.set.Store(&clockReading{server: server, local: before.Add(took / 2)})
	}
}

// Time is about what Now returns, without asking: what it returned last, and the time since then. It is right to within half
// of what an answer takes, except for up to 30 seconds after this machine has slept, 5 for a replica that has joined. For a store in a directory it is time.Now.
func (s *Store) Time() time.Time {
	r := s.clock.set.Load()
	if r == nil || !s.Shared() {
		return time.Now()
	}
	return r.server.Add(time.Since(r.local))
}

// clockLook is how often the time is asked for: this machine's monotonic clock stands still while it sleeps.
const clockLook = 30 * time.Second

// followClock asks for the time, and then again and again until the store is closed.
func (s *Store) followClock(ctx context.Context) error {
	if !s.Shared() {
		return nil
	}
	if err := s.setClock(ctx); err != nil {
		return err
	}
	s.every(clockLook, s.setClock)
	return nil
}

func (s *Store) setClock(ctx context.Context) error {
	return s.View(ctx, func(tx *sql.Tx) error {
		_, err := s.Now(ctx, tx)
		return err
	})
}

// every does something again and again until the store is closed. What fails may succeed the next time.
func (s *Store) every(interval time.Duration, do func(context.Context) error) {
	s.working.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-s.ending.Done():
				return
			case <-ticker.C:
				_ = do(s.ending)
			}
		}
	})
}

package store

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// clock estimates the server's clock from its last reading.
type clock struct{ set atomic.Pointer[clockReading] }

// clockReading holds simultaneous readings of both clocks. The time since then is measured with the monotonic clock, so
// setting this machine's clock has no effect.
type clockReading struct{ server, local time.Time }

// Now returns the time in a transaction. With PostgreSQL it is the server's time, on which all replicas agree. It is
// meant for times that one replica writes and another compares, such as leases.
func (s *Store) Now(ctx context.Context, tx *sql.Tx) (time.Time, error) {
	before := time.Now()
	now, err := s.engine.Now(ctx, tx)
	if err == nil {
		s.clock.read(now, before, time.Since(before))
	}
	return now, err
}

// maxRoundTrip is the longest round trip after which a reading replaces an earlier one. The error of a reading is at
// most half of its round trip.
const maxRoundTrip = time.Second

// read stores a reading of the server's clock. The query started at before and took the given time.
func (c *clock) read(server, before time.Time, took time.Duration) {
	if took < maxRoundTrip || c.set.Load() == nil {
		c.set.Store(&clockReading{server: server, local: before.Add(took / 2)})
	}
}

// Time estimates the result of Now without a query, from the last reading and the time since then. The error is at most
// half a round trip, except for up to 30 seconds after this machine was suspended, or 5 seconds for a replica that has
// joined. For a directory it is time.Now.
func (s *Store) Time() time.Time {
	r := s.clock.set.Load()
	if r == nil || !s.Shared() {
		return time.Now()
	}
	return r.server.Add(time.Since(r.local))
}

// clockInterval is the interval of readings. They are repeated because the monotonic clock stops while the machine is
// suspended.
const clockInterval = 30 * time.Second

// followClock reads the clock now and then periodically until the store is closed.
func (s *Store) followClock(ctx context.Context) error {
	if !s.Shared() {
		return nil
	}
	if err := s.setClock(ctx); err != nil {
		return err
	}
	s.every(clockInterval, s.setClock)
	return nil
}

func (s *Store) setClock(ctx context.Context) error {
	return s.View(ctx, func(tx *sql.Tx) error {
		_, err := s.Now(ctx, tx)
		return err
	})
}

// every calls do periodically until the store is closed. It ignores errors.
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

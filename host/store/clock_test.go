package store

import (
	"database/sql"
	"testing"
	"time"
)

// A look that took long does not spoil a good one.
func TestSlowLook(t *testing.T) {
	t.Parallel()
	var c clock
	now := time.Now()
	for i, look := range []struct {
		took time.Duration
		want time.Duration // how far the server is ahead
	}{{8 * time.Second, -4 * time.Second}, {time.Millisecond, -time.Millisecond / 2}, {8 * time.Second, -time.Millisecond / 2}} {
		c.read(now, now, look.took)
		r := c.set.Load()
		if got := r.server.Sub(r.local); got != look.want {
			t.Errorf("after look %d the server is %v ahead, want %v", i, got, look.want)
		}
	}
}

// Replicas have one clock, whatever their own say.
func TestTime(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := open(t, where)
		if s.Shared() { // as if the server's clock were a day ahead when it was asked
			now := time.Now()
			s.clock.set.Store(&clockReading{server: now.AddDate(0, 0, 1), local: now})
			if ahead := time.Until(s.Time()); ahead < 23*time.Hour || ahead > 25*time.Hour {
				t.Errorf("it is %v ahead", ahead)
			}
		}
		err := s.View(t.Context(), func(tx *sql.Tx) error {
			_, err := s.Now(t.Context(), tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(s.Time()); ahead.Abs() > time.Minute {
			t.Errorf("it is %v ahead", ahead)
		}
	})
}

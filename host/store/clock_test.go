package store

import (
	"database/sql"
	"testing"
	"time"
)

// TestSlowLook: a slow reading does not replace a good one.
func TestSlowLook(t *testing.T) {
	t.Parallel()
	var c clock
	now := time.Now()
	for i, look := range []struct {
		took time.Duration
		want time.Duration // offset of the server's clock
	}{{8 * time.Second, -4 * time.Second}, {time.Millisecond, -time.Millisecond / 2},
		{8 * time.Second, -time.Millisecond / 2}} {
		c.read(now, now, look.took)
		r := c.set.Load()
		if got := r.server.Sub(r.local); got != look.want {
			t.Errorf("after look %d the server is %v ahead, want %v", i, got, look.want)
		}
	}
}

// TestTime: all replicas see the server's time, whatever their own clocks show.
func TestTime(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := open(t, where)
		if s.Shared() { // as if the server's clock were a day ahead at the last reading
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

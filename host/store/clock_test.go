package store_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/store"
)

// TestTime: all replicas see the server's time, whatever their own clocks show.
func TestTime(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := storetest.Open(t, where)
		if s.Shared() { // as if the server's clock were a day ahead at the last reading
			now := time.Now()
			store.SetClock(s, now.AddDate(0, 0, 1), now)
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

package store

import (
	"database/sql"
	"testing"
	"time"
)

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

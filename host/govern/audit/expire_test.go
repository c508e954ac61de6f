package audit

import (
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/store/drivers"
)

// Records that go by retention while the log is verified are no sign that somebody has changed it; others that go are.
func TestVerifyWhileRecordsExpire(t *testing.T) {
	t.Parallel()
	s, err := drivers.Open(t.Context(), postgrestest.Start(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l, err := Open(&Options{Store: s, Key: key, Retain: time.Hour, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const records = 2*page + 100
	add := func() {
		var done sync.WaitGroup
		for range records {
			done.Go(func() {
				if err := l.Append(t.Context(), &Event{Type: TypeCall}); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	add()
	now = now.Add(2 * time.Hour)
	add()
	table := NewTable(s, key)
	table.between = sync.OnceFunc(func() {
		if err := l.Expire(t.Context()); err != nil {
			t.Error(err)
		}
	})
	report, err := table.Verify(t.Context(), nil)
	if err != nil || !report.OK() || report.First <= records {
		t.Errorf("%+v, %v", report, err)
	}
	table.between = sync.OnceFunc(func() {
		err := s.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "DELETE FROM audit_record WHERE seq < $1", report.First+page+10)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if report, err = table.Verify(t.Context(), nil); err != nil || report.OK() ||
		!strings.Contains(report.Problems[0].Text, "no record says that the earlier") {
		t.Errorf("%+v, %v", report, err)
	}
}

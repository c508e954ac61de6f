package console_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/pipeline"
)

// save saves what a world has counted.
func (w *world) save() {
	w.t.Helper()
	if err := w.Save(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// calls adds up the calls and failures of a chart.
func (s *seriesJSON) calls() (calls, failures int) {
	for _, p := range s.Points {
		calls += int(*p[0])
		failures += int(*p[1])
	}
	return calls, failures
}

// TestHistory: longer spans are of all processes over the store, outlive them, and forget what is older.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(*testing.T) string{
		"a directory": func(t *testing.T) string { return filepath.Join(t.TempDir(), "store") },
		"PostgreSQL":  func(t *testing.T) string { return postgrestest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := place(t)
			first, second := newWorldIn(t, at, nil), newWorldIn(t, at, nil)
			second.clock.add(-time.Minute)
			first.clock.add(-time.Minute)
			for range 3 { // the last step is counted on, and written over
				for range 100 {
					first.traffic.CallEnded(ended("greet", pipeline.OK, 3*time.Millisecond))
				}
				first.save()
			}
			second.traffic.CallEnded(ended("greet", pipeline.Timeout, 30*time.Second))
			second.traffic.CallEnded(ended("other", pipeline.OK, time.Second))
			second.save()
			third := newWorldIn(t, at, nil) // which has counted nothing
			b := third.as(console.Viewer)
			var s seriesJSON
			b.get("series?span=day&tool=greet").into(t, &s)
			if len(s.Points) != 144 || s.Step != 600 ||
				!s.From.Equal(third.clock.Now().Add(10*time.Minute-24*time.Hour)) {
				t.Fatalf("the day has %d points of %d s from %s", len(s.Points), s.Step, s.From)
			}
			if p := s.Points[142]; *p[0] != 301 || *p[1] != 1 || *p[2] < 2 || *p[2] > 4 {
				t.Errorf("the step of the calls has %v, %v calls", *p[0], *p[1])
			}
			b.get("series?span=week").into(t, &s)
			if calls, failures := s.calls(); len(s.Points) != 168 || calls != 302 || failures != 1 {
				t.Errorf("the week has %d points, %d calls, %d failures", len(s.Points), calls, failures)
			}
			var top struct {
				Items []struct {
					Tool, Plugin    string
					Calls, Failures int
					Spark           []int
				}
			}
			b.get("series/top?span=week&by=calls").into(t, &top)
			if i := top.Items; len(i) != 2 || i[0].Tool != "greet" || i[0].Calls != 301 || i[0].Plugin != "plugin" ||
				len(i[0].Spark) != 30 || i[0].Spark[29] != 301 {
				t.Errorf("top = %+v", top.Items)
			}
			third.clock.add(25 * time.Hour)
			b = third.as(console.Viewer)
			if b.get("series?span=day").into(t, &s); s.Points[0][2] != nil {
				t.Errorf("a day later: %v", s.Points[0])
			}
			if b.get("series?span=week&tool=other").into(t, &s); *s.Points[167-26][0] != 1 {
				calls, _ := s.calls()
				t.Errorf("a day later the week has %d calls, none where they were", calls)
			}
		})
	}
}

// TestHistoryForgets: rows that no chart shows any more are deleted.
func TestHistoryForgets(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "store")
	w := newWorldIn(t, at, nil)
	w.traffic.CallEnded(ended("greet", pipeline.OK, time.Millisecond))
	w.save()
	later := newWorldIn(t, at, nil)
	later.clock.add(8 * 24 * time.Hour)
	later.save()
	var rows int
	err := later.store.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM console_traffic`).Scan(&rows)
	})
	if err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}

// TestHistoryOfAStepThatIsOver: what was counted in a step that ended before it was saved is not lost, nor when the
// store is away for a while.
func TestHistoryOfAStepThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 3 {
		if i > 0 {
			w.clock.add(10 * time.Minute)
		}
		w.traffic.CallEnded(ended("greet", pipeline.OK, time.Millisecond))
		w.traffic.CallEnded(ended("greet", pipeline.OK, time.Millisecond))
		if i == 1 { // nothing can be written, and nothing gets lost
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := w.Save(ctx); err == nil {
				t.Error("it was saved")
			}
		}
	}
	w.save()
	var s seriesJSON
	w.as(console.Viewer).get("series?span=day&tool=greet").into(t, &s)
	for i := 141; i < 144; i++ {
		if *s.Points[i][0] != 2 {
			t.Errorf("point %d has %v calls, want 2", i, *s.Points[i][0])
		}
	}
}

// TestHistoryIsBounded: whatever names there are, and however long the store is away.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	traffic := console.NewTrafficAt(c.Now)
	for i := range 3 * console.MaxLate {
		if i%1000 == 0 {
			c.add(10 * time.Minute)
		}
		traffic.CallEnded(ended(fmt.Sprint("tool", i), pipeline.OK, time.Millisecond))
	}
	if n := traffic.Late(); n != console.MaxLate {
		t.Errorf("%d counts wait, want %d", n, console.MaxLate)
	}
	if console.SeriesBytes > 44_000 {
		t.Errorf("a series takes %d bytes, more than its comment says", console.SeriesBytes)
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	counts, _, _ := console.DecodeDurations(nil)
	for i := range counts {
		counts[i] = 1<<32 - 1 - uint32(i)
	}
	const slowest = 131 * time.Second
	data := console.EncodeDurations(counts, slowest)
	if got, longest, err := console.DecodeDurations(data); err != nil || got != counts || longest != slowest {
		t.Errorf("%v, %v, %v", got, longest, err)
	}
	data = data[:5*len(counts)] // as earlier versions wrote it
	if got, longest, err := console.DecodeDurations(data); err != nil || got != counts || longest != 0 {
		t.Errorf("%v, %v, %v", got, longest, err)
	}
	huge := slices.Concat(data[:1], []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	for name, data := range map[string][]byte{"nothing": nil, "cut": data[:len(data)-1], "too large": huge, "five bytes": []byte(strings.Repeat("\xff\xff\xff\xff\x7f", 20))} {
		if _, _, err := console.DecodeDurations(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

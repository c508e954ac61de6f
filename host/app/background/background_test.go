package background

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// process is a process that uses a store.
type process struct {
	store  *store.Store
	runner *Runner
	runs   atomic.Int64
}

func start(t *testing.T, where string, jobs func(*process) []Job) *process {
	t.Helper()
	p := new(process)
	var err error
	if p.store, err = drivers.Open(t.Context(), where, &drivers.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if p.runner, err = Start(t.Context(), p.store, nil, jobs(p)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	p.runner.Close()
	_ = p.store.Close()
}

func counting(p *process) []Job {
	return []Job{{Name: "count", Every: time.Second, Run: func(context.Context) error {
		p.runs.Add(1)
		return nil
	}}}
}

// places are the two kinds of stores.
func places(t *testing.T, run func(t *testing.T, where string)) {
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		run(t, filepath.Join(t.TempDir(), "store"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		run(t, postgrestest.Start(t))
	})
}

func await(t *testing.T, happened func() bool) {
	t.Helper()
	if !testwait.Until(t, happened) {
		t.Fatal("it does not happen")
	}
}

// A job runs as often as one process alone would run it, and goes on when processes end.
func TestOnce(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, where string) {
		begin := time.Now()
		a := start(t, where, counting)
		b, c := start(t, where, counting), start(t, where, counting)
		all := func() int64 { return a.runs.Load() + b.runs.Load() + c.runs.Load() }
		await(t, func() bool { return all() >= 3 })
		n := all() // before the time is taken
		if took := time.Since(begin); n > int64(took/time.Second)+2 {
			t.Errorf("%d runs within %v", n, took)
		}
		a.end()
		b.end()
		before := c.runs.Load()
		await(t, func() bool { return c.runs.Load() > before })
	})
}

// A job that fails is run again, and does not keep others from running.
func TestFailures(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, where string) {
		p := start(t, where, func(p *process) []Job {
			return append(counting(p), Job{Name: "fail", Every: time.Second, Run: func(context.Context) error {
				p.runs.Add(1000)
				return errors.New("as it should")
			}})
		})
		await(t, func() bool { return p.runs.Load() >= 2002 && p.runs.Load()%1000 >= 2 })
	})
}

// Close ends jobs that run.
func TestClose(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, where string) {
		running, ended := make(chan struct{}), make(chan struct{})
		p := start(t, where, func(*process) []Job {
			return []Job{{Name: "long", Every: time.Hour, Run: func(ctx context.Context) error {
				close(running)
				<-ctx.Done()
				close(ended)
				return ctx.Err()
			}}}
		})
		<-running
		p.runner.Close()
		select {
		case <-ended:
		default:
			t.Error("it goes on")
		}
	})
}

func TestJobsAreWhole(t *testing.T) {
	t.Parallel()
	s, err := drivers.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	good := Job{Name: "x", Every: time.Second, Run: func(context.Context) error { return nil }}
	for name, jobs := range map[string][]Job{
		"no name": {{Every: time.Second, Run: good.Run}}, "too often": {{Name: "x", Run: good.Run}},
		"nothing to do": {{Name: "x", Every: time.Second}},
		"twice":         {good, good},
	} {
		if _, err := Start(t.Context(), s, nil, jobs...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

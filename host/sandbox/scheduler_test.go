package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// simulation runs guests on simulated processors. Computing is sleeping, which takes exactly its time in a synctest
// bubble.
type simulation struct {
	scheduler *scheduler
	group     sync.WaitGroup
	ctx       context.Context
}

// quantumTime is the duration of a quantum of a simulated guest.
const quantumTime = 30 * time.Microsecond

func simulate(t *testing.T, processors int, test func(*simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &simulation{scheduler: newScheduler(processors), ctx: ctx}
		test(s)
		cancel()
		s.group.Wait()
		for i := range s.scheduler.slots {
			if s.scheduler.slots[i].Load() != nil {
				t.Errorf("slot %d is still held", i)
			}
		}
		if n := s.scheduler.waiting.Load(); n != 0 || s.scheduler.newArrivals != 0 ||
			len(s.scheduler.root.waiting) != 0 {
			t.Errorf("%d turns still wait, %d fresh", n, s.scheduler.newArrivals)
		}
	})
}

// compute runs a simulated call for the time need, with host functions if waits is not zero. It returns the elapsed
// time and the computed time.
func (s *simulation) compute(plugin *share, user string, need, waits time.Duration) (took, had time.Duration) {
	turn := &turn{scheduler: s.scheduler, plugin: plugin, caller: callerID{"", user}}
	begin := time.Now()
	defer turn.release()
	if turn.acquire(s.ctx) != nil {
		return time.Since(begin), 0
	}
	for had < need && s.ctx.Err() == nil {
		time.Sleep(quantumTime)
		had += quantumTime
		if waits > 0 {
			turn.enterHost()
			time.Sleep(waits)
			if turn.leaveHost(s.ctx) != nil {
				break
			}
		}
		if turn.yield(s.ctx) != nil {
			break
		}
	}
	return time.Since(begin), had
}

// spin starts n calls that compute until the simulation ends, and adds their computed time to had.
func (s *simulation) spin(plugin *share, user string, n int, had *time.Duration, mu *sync.Mutex) {
	for range n {
		s.group.Go(func() {
			_, got := s.compute(plugin, user, time.Hour, 0)
			mu.Lock()
			defer mu.Unlock()
			*had += got
		})
	}
}

// TestHostileNeighbourShares checks the exact shares of plugins and callers that compete for processors.
func TestHostileNeighbourShares(t *testing.T) {
	t.Parallel()
	const second = time.Second
	type party struct {
		plugin, user string
		calls        int
		want         float64 // of one processor
	}
	for name, test := range map[string]struct {
		processors int
		parties    []party
	}{
		"one call beside 200 of another plugin": {1, []party{{"a", "x", 200, 0.5}, {"b", "y", 1, 0.5}}},
		"two processors":                        {2, []party{{"a", "x", 200, 1}, {"b", "y", 1, 1}}},
		"one user beside 200 calls of another":  {1, []party{{"a", "x", 200, 0.5}, {"a", "y", 1, 0.5}}},
		"200 users of a plugin beside another":  {1, []party{{"a", "*", 200, 0.5}, {"b", "y", 1, 0.5}}},
		"three plugins": {1, []party{{"a", "x", 100, 1. / 3}, {"b", "x", 10, 1. / 3},
			{"c", "x", 1, 1. / 3}}},
		"what one cannot use the others share": {4, []party{{"a", "x", 1, 1}, {"b", "x", 50, 1.5},
			{"c", "x", 50, 1.5}}},
		"users of one plugin beside another's": {1, []party{{"a", "x", 9, 0.25}, {"a", "y", 1, 0.25},
			{"b", "x", 3, 0.5}}},
		"nobody waits": {2, []party{{"a", "x", 1, 1}, {"b", "x", 1, 1}}},
		"as many plugins as there are, on one": {1, []party{{"a", "x", 1, 0.25}, {"b", "x", 1, 0.25},
			{"c", "x", 1, 0.25}, {"d", "x", 1, 0.25}}},
		"a crowd of callers that has no user's name": {1, []party{{"a", "", 200, 0.5}, {"b", "", 2, 0.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			had := make([]time.Duration, len(test.parties))
			simulate(t, test.processors, func(s *simulation) {
				plugins := map[string]*share{}
				for i, p := range test.parties {
					if plugins[p.plugin] == nil {
						plugins[p.plugin] = &share{}
					}
					for n := range p.calls {
						user := p.user
						if user == "*" {
							user = fmt.Sprint(n)
						}
						s.spin(plugins[p.plugin], user, 1, &had[i], &mu)
					}
				}
				time.Sleep(second)
			})
			for i, p := range test.parties {
				if got := had[i].Seconds(); got < p.want*0.97-0.005 || got > p.want*1.03+0.005 {
					t.Errorf("%d calls of user %q of plugin %s got %.3f of a processor, want %.3f", p.calls, p.user,
						p.plugin, got, p.want)
				}
			}
		})
	}
}

// TestHostileNeighbourLatency checks that short calls beside 200 spinning ones wait no longer than the end of a
// quantum.
func TestHostileNeighbourLatency(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		processors  int
		user        string // of the short calls
		samePlugin  bool
		waits, most time.Duration
	}{
		"another plugin":                    {2, "y", false, 0, 5 * quantumTime},
		"another plugin, one processor":     {1, "y", false, 0, 5 * quantumTime},
		"another user":                      {2, "y", true, 0, 5 * quantumTime},
		"the same user":                     {2, "x", true, 0, 2 * timeSlice},
		"with a host function each quantum": {2, "y", false, 10 * time.Microsecond, 12 * quantumTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulate(t, test.processors, func(s *simulation) {
				var mu sync.Mutex
				var had time.Duration
				spinners, quick := &share{}, &share{}
				if test.samePlugin {
					quick = spinners
				}
				s.spin(spinners, "x", 200, &had, &mu)
				time.Sleep(time.Second)
				for range 100 {
					time.Sleep(777 * time.Microsecond)
					if took, _ := s.compute(quick, test.user, 3*quantumTime, test.waits); took > test.most {
						t.Errorf("a call of %v took %v", 3*quantumTime, took)
					}
				}
			})
		})
	}
}

// TestHostileNeighbourWaits makes guests hold all processors while they wait in host functions.
func TestHostileNeighbourWaits(t *testing.T) {
	t.Parallel()
	simulate(t, 2, func(s *simulation) {
		sleepers, quick := &share{}, &share{}
		for range 50 {
			s.group.Go(func() { s.compute(sleepers, "x", quantumTime, time.Hour) })
		}
		time.Sleep(time.Second) // all are in their host functions
		for range 20 {
			if took, _ := s.compute(quick, "y", 3*quantumTime, 0); took > 5*quantumTime {
				t.Errorf("a call of %v took %v", 3*quantumTime, took)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestHostileNeighbourSavesNothing checks that neither an idle plugin nor new callers gain more than their share later.
func TestHostileNeighbourSavesNothing(t *testing.T) {
	t.Parallel()
	simulate(t, 1, func(s *simulation) {
		var mu sync.Mutex
		var steady, late time.Duration
		a, b := &share{}, &share{}
		s.compute(b, "x", quantumTime, 0)
		s.spin(a, "x", 10, &steady, &mu)
		time.Sleep(10 * time.Second)
		begin := time.Now()
		for time.Since(begin) < time.Second { // many short calls, each of a caller that nobody knows yet
			_, had := s.compute(b, fmt.Sprint(time.Now()), timeSlice, 0)
			late += had
		}
		if late > 520*time.Millisecond || late < 480*time.Millisecond {
			t.Errorf("it got %v of a second", late)
		}
		if len(b.callers) > maxIdleShares+1 {
			t.Errorf("%d callers are remembered", len(b.callers))
		}
	})
}

// TestTurnEndsWithItsContext cancels calls that wait for a processor.
func TestTurnEndsWithItsContext(t *testing.T) {
	t.Parallel()
	simulate(t, 1, func(s *simulation) {
		var mu sync.Mutex
		var had time.Duration
		plugin := &share{}
		s.spin(plugin, "x", 3, &had, &mu)
		time.Sleep(time.Second)
		for n := range 50 {
			ctx, cancel := context.WithTimeout(s.ctx, time.Duration(n)*time.Microsecond)
			turn := &turn{scheduler: s.scheduler, plugin: plugin, caller: callerID{"", "y"}}
			if err := turn.acquire(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			turn.release()
			turn.release()
			cancel()
		}
	})
}

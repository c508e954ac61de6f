package quota_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/store/drivers"
)

// clock is a time that tests set.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func limiter(t *testing.T, c *clock, ledger quota.Ledger, rules ...quota.Rule) *quota.Limiter {
	t.Helper()
	for _, rule := range rules {
		if err := rule.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return quota.New(rules, &quota.Options{Now: c.Now, Ledger: ledger})
}

// acquire makes n calls and returns how many passed, their release functions, and the last error.
func acquire(l *quota.Limiter, n int, c quota.Call) (passed int, leave []func(int64), last *quota.Error) {
	for range n {
		done, err := l.Acquire(c)
		if err == nil {
			passed++
			leave = append(leave, done)
			continue
		}
		errors.As(err, &last)
	}
	return passed, leave, last
}

// TestParent: a call that a call's tool makes counts as the same concurrent call where both count, and in every rate.
func TestParent(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l := limiter(t, c, nil, quota.Rule{Name: "calls", Rate: 60, Burst: 4, Concurrent: 1},
		quota.Rule{Name: "of the plugin", Per: quota.Plugin, Concurrent: 1})
	outer := quota.Call{User: "aki", Plugin: "outer"}
	passed, leave, _ := acquire(l, 2, outer)
	if passed != 1 {
		t.Errorf("%d calls at once passed", passed)
	}
	inner := quota.Call{User: "aki", Plugin: "inner", Parent: &outer}
	passed, leaveInner, err := acquire(l, 2, inner)
	if passed != 1 || err == nil || err.Rule != "of the plugin" {
		t.Errorf("%d calls by the tool at once passed, %v", passed, err)
	}
	leaveInner[0](0)
	if passed, _, _ := acquire(l, 1, outer); passed != 0 {
		t.Error("the end of a call by the tool ended the tool's own")
	}
	for range 2 {
		if _, leave, _ := acquire(l, 1, inner); len(leave) == 1 {
			leave[0](0)
		}
	}
	if _, _, err := acquire(l, 1, inner); err == nil || err.Rule != "calls" {
		t.Errorf("the fifth call within the rate: %v", err)
	}
	leave[0](0)
}

func TestRate(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l := limiter(t, c, nil, quota.Rule{Name: "calls", Rate: 60, Burst: 5})
	passed, _, err := acquire(l, 10, quota.Call{User: "aki"})
	if passed != 5 || err == nil || err.RetryAfter != time.Second || err.Rule != "calls" {
		t.Errorf("%d passed, %v", passed, err)
	}
	if passed, _, _ := acquire(l, 10, quota.Call{User: "yuki"}); passed != 5 {
		t.Errorf("of another user %d passed", passed)
	}
	if passed, _, _ := acquire(l, 10, quota.Call{User: "aki", Tenant: "acme"}); passed != 5 {
		t.Errorf("of a user of the same name in another tenant %d passed", passed)
	}
	c.now = c.now.Add(2 * time.Second)
	if passed, _, _ := acquire(l, 10, quota.Call{User: "aki"}); passed != 2 {
		t.Errorf("two seconds later %d passed", passed)
	}
}

// TestRefusedCallsCountNowhere checks that a call refused by one quota uses nothing of another.
func TestRefusedCallsCountNowhere(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l := limiter(t, c, nil, quota.Rule{Name: "all", Per: quota.All, Rate: 60, Burst: 3},
		quota.Rule{Name: "user", Rate: 6, Burst: 1})
	if passed, _, err := acquire(l, 10, quota.Call{User: "aki"}); passed != 1 || err.Rule != "user" ||
		err.RetryAfter != 10*time.Second {
		t.Errorf("%d passed, %v", passed, err)
	}
	for _, user := range []string{"yuki", "ken"} {
		if passed, _, err := acquire(l, 1, quota.Call{User: user}); passed != 1 {
			t.Errorf("%s: %v", user, err)
		}
	}
	if _, _, err := acquire(l, 1, quota.Call{User: "mei"}); err == nil || err.Rule != "all" {
		t.Errorf("the fourth: %v", err)
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	l := limiter(t, &clock{time.Now()}, nil, quota.Rule{Name: "few", Per: quota.Plugin, Concurrent: 2},
		quota.Rule{Name: "hr only", Per: quota.All, Plugins: []string{"hr"}, Concurrent: 1})
	if passed, leave, err := acquire(l, 3, quota.Call{Plugin: "weather"}); passed != 2 || err.Rule != "few" {
		t.Errorf("%d passed, %v", passed, err)
	} else {
		leave[0](0)
	}
	if passed, _, _ := acquire(l, 3, quota.Call{Plugin: "weather"}); passed != 1 {
		t.Errorf("after one has ended %d passed", passed)
	}
	passed, leave, err := acquire(l, 3, quota.Call{Plugin: "hr"})
	if passed != 1 || err.Rule != "hr only" {
		t.Errorf("%d passed, %v", passed, err)
	}
	leave[0](0)
	if passed, _, _ := acquire(l, 1, quota.Call{Plugin: "hr"}); passed != 1 {
		t.Error("a call that one quota refused was counted by another")
	}
}

func TestComputing(t *testing.T) {
	t.Parallel()
	dir := storetest.Where(t)
	c := &clock{time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)}
	rule := quota.Rule{Name: "computing", Per: quota.Tenant, CPU: 10 * time.Second}
	call := quota.Call{Tenant: "acme"}
	l := limiter(t, c, book(t, dir), rule)
	use := func(l *quota.Limiter, seconds int64) {
		t.Helper()
		leave, err := l.Acquire(call)
		if err != nil {
			t.Fatal(err)
		}
		leave(seconds * quota.StepsPerSecond)
	}
	use(l, 4)
	l.Flush()
	// Another replica, or the same after a restart.
	again := limiter(t, c, book(t, dir), rule)
	use(again, 6)
	if _, _, err := acquire(again, 1, call); err == nil || err.RetryAfter != time.Hour {
		t.Errorf("after 10 seconds: %v", err)
	}
	if _, err := again.Acquire(quota.Call{Tenant: "other"}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	again.Flush()
	use(l, 1)
	l.Flush()
	if _, _, err := acquire(l, 1, call); err == nil {
		t.Error("what another replica has used is not known after a flush")
	}
	c.now = c.now.Add(2 * time.Hour)
	use(again, 1)
}

func book(t *testing.T, dir string) *quota.Store {
	t.Helper()
	s, err := drivers.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := quota.NewStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSetRules(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	rule := quota.Rule{Name: "calls", Rate: 5}
	l := limiter(t, c, nil, rule)
	if passed, _, _ := acquire(l, 10, quota.Call{}); passed != 5 {
		t.Errorf("%d passed", passed)
	}
	l.SetRules([]quota.Rule{rule})
	if passed, _, _ := acquire(l, 10, quota.Call{}); passed != 0 {
		t.Errorf("the same rule again lets %d pass", passed)
	}
	l.SetRules([]quota.Rule{{Name: "calls", Rate: 7}})
	if passed, _, _ := acquire(l, 10, quota.Call{}); passed != 7 {
		t.Errorf("another rate lets %d pass", passed)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, rule := range []quota.Rule{{Rate: 1}, {Name: "x"}, {Name: "x", Rate: -1},
		{Name: "x", Rate: 1, Per: "team"}} {
		if rule.Check() == nil {
			t.Errorf("%+v passes", rule)
		}
	}
}

// TestManyCallers checks that concurrent callers do not exceed a limit.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	l := limiter(t, &clock{time.Now()}, nil, quota.Rule{Name: "few", Per: quota.All, Concurrent: 4})
	var mu sync.Mutex
	running, most := 0, 0
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 200 {
				leave, err := l.Acquire(quota.Call{})
				if err != nil {
					continue
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
				leave(1)
			}
		})
	}
	group.Wait()
	if most > 4 {
		t.Errorf("%d at once", most)
	}
}

func BenchmarkAcquire(b *testing.B) {
	l := quota.New([]quota.Rule{
		{Name: "calls", Rate: 1 << 30}, {Name: "few", Per: quota.Tenant, Concurrent: 1000},
		{Name: "computing", Per: quota.Plugin, CPU: time.Hour},
	}, nil)
	for b.Loop() {
		leave, err := l.Acquire(quota.Call{Tenant: "acme", User: "aki", Plugin: "weather", Tool: "get_weather"})
		if err != nil {
			b.Fatal(err)
		}
		leave(1000)
	}
}

// stuck is a ledger that blocks until it is released.
type stuck struct{ asked, letGo chan struct{} }

func (s *stuck) Add(context.Context, string, string, time.Duration) (time.Duration, error) {
	s.asked <- struct{}{}
	<-s.letGo
	return 9 * time.Second, nil
}

// notes is a ledger implemented by a function.
type notes func(used time.Duration) (time.Duration, error)

func (n notes) Add(_ context.Context, _, _ string, used time.Duration) (time.Duration, error) {
	return n(used)
}

// TestLedger checks that use is saved again after a failed save, and that use during a save is not lost.
func TestLedger(t *testing.T) {
	t.Parallel()
	var told []time.Duration
	meanwhile := func() {}
	var failure error
	ledger := notes(func(used time.Duration) (time.Duration, error) {
		if used == 0 {
			return 0, nil
		}
		told = append(told, used)
		meanwhile()
		return used, failure
	})
	l := limiter(t, &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, ledger,
		quota.Rule{Name: "computing", CPU: 10 * time.Second})
	_, leave, _ := acquire(l, 3, quota.Call{})
	leave[0](4 * quota.StepsPerSecond)
	failure = errors.New("disk full")
	l.Flush()
	failure = nil
	meanwhile = func() { leave[1](3 * quota.StepsPerSecond) }
	l.Flush()
	if !slices.Equal(told, []time.Duration{4 * time.Second, 4 * time.Second}) {
		t.Errorf("told %v", told)
	}
	leave[2](3 * quota.StepsPerSecond)
	if passed, _, _ := acquire(l, 1, quota.Call{}); passed != 0 {
		t.Error("a call passes after 10 seconds of computing")
	}
}

// TestStuckLedger checks that a caller that waits for the ledger does not block others.
func TestStuckLedger(t *testing.T) {
	t.Parallel()
	ledger := &stuck{make(chan struct{}), make(chan struct{})}
	l := limiter(t, &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, ledger,
		quota.Rule{Name: "computing", Plugins: []string{"hr"}, CPU: 10 * time.Second},
		quota.Rule{Name: "calls", Rate: 60})
	entered := make(chan error)
	go func() {
		leave, err := l.Acquire(quota.Call{Plugin: "hr"})
		if err == nil {
			leave(quota.StepsPerSecond)
		}
		entered <- err
	}()
	<-ledger.asked
	if _, err := l.Acquire(quota.Call{Plugin: "weather"}); err != nil {
		t.Error(err)
	}
	close(ledger.letGo)
	if err := <-entered; err != nil {
		t.Error(err)
	}
	if _, err := l.Acquire(quota.Call{Plugin: "hr"}); err == nil ||
		!strings.Contains(err.Error(), "10s of computing a day: try again in 12h0m0s") {
		t.Errorf("after 9 seconds elsewhere and one here: %v", err)
	}
}

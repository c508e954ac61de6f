package quota_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/govern/quota"
)

// countingPool counts the calls of a pool.
type countingPool struct {
	*quota.Store
	asked atomic.Int64
}

func (c *countingPool) Tokens(ctx context.Context, key string, rule *quota.Rule, n int) (int, time.Duration, error) {
	c.asked.Add(1)
	return c.Store.Tokens(ctx, key, rule, n)
}

func (c *countingPool) Slots(ctx context.Context, key string, rule *quota.Rule, n int) (int, error) {
	c.asked.Add(1)
	return c.Store.Slots(ctx, key, rule, n)
}

// replicas returns limiters over one store.
func replicas(t *testing.T, n int, rules ...quota.Rule) (list []*quota.Limiter, pools []*countingPool) {
	t.Helper()
	where := storetest.Where(t)
	for range n {
		pool := &countingPool{Store: book(t, where)}
		l := quota.New(rules, &quota.Options{Ledger: pool, Pool: pool})
		t.Cleanup(l.Close)
		list, pools = append(list, l), append(pools, pool)
	}
	return list, pools
}

// TestRateIsShared checks that replicas together let as many calls pass as the quota allows, and that one replica lacks
// the unused batch of another until its Flush.
func TestRateIsShared(t *testing.T) {
	t.Parallel()
	const burst = 200
	all, pools := replicas(t, 3, quota.Rule{Name: "calls", Per: quota.Tenant, Rate: 1, Burst: burst})
	var passed atomic.Int64
	var done sync.WaitGroup
	for i := range 3 {
		for range 4 {
			done.Go(func() {
				n, leave, _ := acquire(all[i], burst, quota.Call{Tenant: "acme\x00"})
				for _, end := range leave {
					end(0)
				}
				passed.Add(int64(n))
			})
		}
	}
	done.Wait()
	if n := passed.Load(); n > burst+1 || n < burst-1 {
		t.Errorf("%d calls passed, want %d", n, burst)
	}
	for _, pool := range pools {
		if n := pool.asked.Load(); n > burst/10 {
			t.Errorf("the pool was asked %d times", n)
		}
	}
	if n, _, err := acquire(all[0], 1, quota.Call{Tenant: "acme\x00"}); n != 0 || err == nil || err.RetryAfter <= 0 {
		t.Errorf("%d more, %v", n, err)
	}
	if n, _, err := acquire(all[0], 1, quota.Call{Tenant: "other"}); n != 1 {
		t.Errorf("another tenant: %v", err)
	}
}

// TestConcurrentRefill checks that concurrent calls each get what the pool has left, however small the batches are.
func TestConcurrentRefill(t *testing.T) {
	t.Parallel()
	const limit = 7
	all, _ := replicas(t, 1, quota.Rule{Name: "calls", Rate: 1, Burst: limit},
		quota.Rule{Name: "at once", Concurrent: limit})
	var passed atomic.Int64
	var done sync.WaitGroup
	for range limit {
		done.Go(func() {
			if _, err := all[0].Acquire(quota.Call{}); err != nil {
				t.Error(err)
				return
			}
			passed.Add(1)
		})
	}
	done.Wait()
	if n, _, err := acquire(all[0], 1, quota.Call{}); n != 0 || err == nil {
		t.Errorf("one more than %d passes", passed.Load())
	}
}

func TestConcurrencyIsShared(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"few": 3, "many": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, _ := replicas(t, 2, quota.Rule{Name: "at once", Per: quota.All, Concurrent: limit})
			n, leave, _ := acquire(all[0], limit+5, quota.Call{})
			if n != limit {
				t.Errorf("%d at once, want %d", n, limit)
			}
			if n, _, err := acquire(all[1], 1, quota.Call{}); n != 0 || err == nil {
				t.Errorf("another replica lets %d pass", n)
			}
			for _, end := range leave[:limit/2+1] {
				end(0)
			}
			all[0].Flush() // slots may still be on their way back
			if !testwait.Until(t, func() bool { other, _, _ := acquire(all[1], 1, quota.Call{}); return other > 0 }) {
				t.Error("what is free again is not for another replica")
			}
		})
	}
}

// TestPoolFailure checks that a replica uses its own share while the pool fails, and does not access the pool for each
// call.
func TestPoolFailure(t *testing.T) {
	t.Parallel()
	pool := new(away)
	l := quota.New([]quota.Rule{{Name: "calls", Rate: 60, Burst: 5}, {Name: "at once", Concurrent: 50}},
		&quota.Options{Pool: pool})
	if n, _, err := acquire(l, 10, quota.Call{}); n != 5 {
		t.Errorf("%d calls passed, %v", n, err)
	}
	l.Flush()
	if n := pool.asked.Load(); n != 2 {
		t.Errorf("the pool was asked %d times, want once for each quota", n)
	}
	l.Close()
}

type away struct{ asked atomic.Int64 }

func (a *away) Tokens(context.Context, string, *quota.Rule, int) (int, time.Duration, error) {
	a.asked.Add(1)
	return 0, 0, errors.New("away")
}

func (a *away) Slots(context.Context, string, *quota.Rule, int) (int, error) {
	a.asked.Add(1)
	return 0, errors.New("away")
}

// TestFlushStopsAtFailure checks that Flush does not wait for a failing ledger once per use.
func TestFlushStopsAtFailure(t *testing.T) {
	t.Parallel()
	asked := 0
	var failure error
	ledger := notes(func(used time.Duration) (time.Duration, error) {
		if used > 0 {
			asked++
		}
		return used, failure
	})
	l := quota.New([]quota.Rule{{Name: "computing", CPU: time.Hour}}, &quota.Options{Ledger: ledger})
	for _, user := range []string{"aki", "yuki", "ken"} {
		leave, err := l.Acquire(quota.Call{User: user})
		if err != nil {
			t.Fatal(err)
		}
		leave(quota.StepsPerSecond)
	}
	failure = errors.New("away")
	l.Flush()
	failure = nil
	l.Flush()
	if asked != 1+3 {
		t.Errorf("it was asked %d times, want once while it was away, and then for each", asked)
	}
}

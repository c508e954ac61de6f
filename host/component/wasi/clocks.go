package wasi

import (
	"math"
	"time"

	"github.com/hako-run/hako/host/broker"
)

// clocks is wasi:clocks. The timezone is UTC, and its interface is unstable in WASI 0.2.
func (h *host) clocks() []broker.Interface {
	return []broker.Interface{
		wasi("clocks/wall-clock", functions{
			"now":        func0(func(caller) any { return datetime(h.Now()) }),
			"resolution": func0(func(caller) any { return []any{uint64(0), uint64(1)} }),
		}),
		wasi("clocks/monotonic-clock", functions{
			"now":               func0(func(caller) any { return h.Monotonic() }),
			"resolution":        func0(func(caller) any { return uint64(1) }),
			"subscribe-instant": func1(func(_ caller, at uint64) any { return timer{h, at} }),
			"subscribe-duration": func1(func(_ caller, d uint64) any {
				return timer{h, saturatingAdd(h.Monotonic(), d)}
			}),
		}),
		wasi("clocks/timezone", functions{
			"display":    func1(func(caller, []any) any { return []any{int64(0), "UTC", false} }),
			"utc-offset": func1(func(caller, []any) any { return int64(0) }),
		}),
	}
}

// datetime returns a wall-clock.datetime. Times before 1970 become 1970.
func datetime(t time.Time) []any {
	if t.Unix() < 0 {
		t = time.Unix(0, 0)
	}
	return []any{uint64(t.Unix()), uint64(t.Nanosecond())}
}

// nanoseconds returns a wall-clock.datetime in nanoseconds since 1970. It reports false for a time after 2262, and for
// more than 999,999,999 nanoseconds.
func nanoseconds(datetime []any) (int64, bool) {
	seconds, rest := arg[uint64](datetime, 0), arg[uint64](datetime, 1)
	if seconds >= math.MaxInt64/uint64(time.Second) || rest >= uint64(time.Second) {
		return 0, false
	}
	return int64(seconds*uint64(time.Second) + rest), true
}

// timer is a pollable that is ready at an instant of the monotonic clock.
type timer struct {
	host *host
	at   uint64
}

func (t timer) ready(caller) bool                { return t.host.Monotonic() >= t.at }
func (t timer) event() (<-chan struct{}, uint64) { return nil, t.at }

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

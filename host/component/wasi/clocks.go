package wasi

import (
	"errors"
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
			"now":                func0(func(caller) any { return h.Monotonic() }),
			"resolution":         func0(func(caller) any { return uint64(1) }),
			"subscribe-instant":  func1(func(_ caller, at uint64) any { return timer{h, at} }),
			"subscribe-duration": func1(func(_ caller, d uint64) any { return timer{h, saturatingAdd(h.Monotonic(), d)} }),
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

// errTime is the error of a datetime that the host cannot represent.
var errTime = errors.New("the time is not between 1970 and 2262, or has more than 999,999,999 nanoseconds")

// nanoseconds returns a wall-clock.datetime in nanoseconds since 1970.
func nanoseconds(datetime []any) (int64, error) {
	seconds, rest := arg[uint64](datetime, 0), arg[uint64](datetime, 1)
	if seconds >= math.MaxInt64/uint64(time.Second) || rest >= uint64(time.Second) {
		return 0, errTime
	}
	return int64(seconds*uint64(time.Second) + rest), nil
}

// timer is a pollable that is ready at an instant of the monotonic clock.
type timer struct {
	host *host
	at   uint64
}

func (t timer) ready(caller) bool      { return t.host.Monotonic() >= t.at }
func (t timer) event() <-chan struct{} { return nil }

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

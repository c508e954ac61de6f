package retry

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := Wait(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := Wait(ctx, 0); err == nil {
			t.Error("a context that has ended is not reported without a wait")
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for retries, longest := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 2: 4 * time.Second,
		4: 10 * time.Second, 1000: 10 * time.Second} {
		for range 20 {
			if d := Backoff(retries, time.Second, 10*time.Second); d < longest/2 || d > longest {
				t.Errorf("after %d retries: %s, want %s to %s", retries, d, longest/2, longest)
			}
		}
	}
	if d := Backoff(0, 0, time.Second); d != 0 {
		t.Errorf("without a first wait: %s", d)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "NaN": 0,
		"1e300": maxAfter * time.Second, "+Inf": maxAfter * time.Second,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Mon, 02 Jan 2006 15:04:05 GMT": 0,
	} {
		if got := After(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

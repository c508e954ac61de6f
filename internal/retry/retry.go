// Package retry has the parts of every retry: Wait waits until a context ends, Backoff is the exponential delay, and
// After reads the Retry-After header.
package retry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Wait waits for d. If ctx ends first, it returns ctx's error.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Backoff returns the wait before a retry that comes after so many others: first, doubled for each of them up to
// longest. Half of it is random.
func Backoff(retries int, first, longest time.Duration) time.Duration {
	d := min(first<<min(retries, 10), longest)
	return d/2 + rand.N(d/2+1)
}

// maxAfter bounds Retry-After, in seconds: more does not fit a time.Duration.
const maxAfter = 1e9

// After parses the header Retry-After, seconds or a date (RFC 9110, section 10.2.3). It is zero without a valid one and
// for a date before now.
func After(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(min(s, maxAfter) * float64(time.Second))
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

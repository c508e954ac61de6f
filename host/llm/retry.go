package llm

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// firstPause is about how long to wait before the first repetition; it doubles with each.
	firstPause = 500 * time.Millisecond
	// maxPause is the longest wait, also where the provider asks for a longer one: then the next model is asked at once.
	maxPause = 30 * time.Second
)

// passing reports a failure that a repetition may not meet.
func (e *Error) passing() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unavailable
}

// wait waits before the next request, and reports false if there is not to be one.
func (a *attempt) wait(ctx context.Context, e *Error) bool {
	pause := backoff(a.waits)
	if e.RetryAfter > 0 {
		pause = e.RetryAfter
	}
	deadline, bounded := ctx.Deadline()
	if !e.passing() || a.waits >= a.spec.Retries || pause > maxPause || bounded && time.Until(deadline) < pause {
		return false
	}
	a.waits++
	a.logger.Info("the model is asked again", "kind", e.Kind, "status", e.Status, "pause", pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff grows with the number of waits before, and varies so that clients do not come back together.
func backoff(waits int) time.Duration {
	pause := min(firstPause<<min(waits, 10), maxPause)
	return pause/2 + rand.N(pause/2)
}

package llm

import (
	"cmp"
	"context"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

const (
	// firstPause is the mean wait before the first retry. It doubles with each retry.
	firstPause = 500 * time.Millisecond
	// maxPause bounds the wait. If the provider asks for a longer one, the next model is tried at once.
	maxPause = 30 * time.Second
)

// temporary reports whether a retry might succeed.
func (e *Error) temporary() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unavailable
}

// waitForRetry waits before the next retry. It reports false if there must be none.
func (a *attempt) waitForRetry(ctx context.Context, e *Error) bool {
	pause := cmp.Or(e.RetryAfter, retry.Backoff(a.retries, firstPause, maxPause))
	deadline, bounded := ctx.Deadline()
	if !e.temporary() || a.retries >= a.spec.Retries || pause > maxPause || bounded && time.Until(deadline) < pause {
		return false
	}
	a.retries++
	a.logger.Info("retrying the model", "kind", e.Kind, "status", e.Status, "pause", pause)
	a.request.retrying(Retry{a.spec.Name, pause})
	return retry.Wait(ctx, pause) == nil
}

package httpbroker

import (
	"context"
	"net/http"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// The delay before the first retry and the longest delay. The delay doubles with each retry. Half of it is random.
const (
	firstBackoff   = 200 * time.Millisecond
	longestBackoff = 5 * time.Second
)

// sendRetrying sends r, again after failures that pass, as long as the rule's retries and the time allow. Otherwise the
// last answer or error stands.
func (b *Broker) sendRetrying(ctx context.Context, r *request) (*Response, error) {
	for try := 0; ; try++ {
		resp, err := b.send(ctx, r)
		if try >= r.rule.retries || !r.idempotent() || ctx.Err() != nil || !isTemporary(resp, err) {
			return resp, err
		}
		wait := retry.Backoff(try, firstBackoff, longestBackoff)
		if resp != nil {
			wait = max(wait, retry.After(resp.Header, b.now()))
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return resp, err
		}
		if resp != nil {
			resp.discard()
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// isTemporary reports whether a retry may succeed.
func isTemporary(resp *Response, err error) bool {
	if err != nil {
		return !permanent(err)
	}
	return resp.Status == http.StatusTooManyRequests || resp.Status >= 500
}

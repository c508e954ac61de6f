package httpbroker

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
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
		wait := backoff(try)
		if resp != nil {
			wait = max(wait, retryAfter(resp.Header, b.now()))
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return resp, err
		}
		if resp != nil {
			resp.discard()
		}
		if err := sleep(ctx, wait); err != nil {
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

func backoff(try int) time.Duration {
	d := min(firstBackoff<<try, longestBackoff)
	return d/2 + rand.N(d/2)
}

// retryAfter reads the header of that name, seconds or a date (RFC 9110, section 10.2.3). Without one it is zero.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return date.Sub(now)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package registry

import (
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

const (
	// maxRetries bounds the retries of a request, and those of an interrupted transfer.
	maxRetries = 4
	// maxDelay bounds the wait before a retry. A registry that asks for more gets none.
	maxDelay = 30 * time.Second
)

// retryPolicy decides which requests are sent again, for the transport of oras-go, which rewinds their bodies.
type retryPolicy struct{ first time.Duration }

// Retry returns how long to wait before the next try; negative means that there is none.
func (p retryPolicy) Retry(attempt int, response *http.Response, err error) (time.Duration, error) {
	if attempt >= maxRetries || !isTemporary(response, err) {
		return -1, nil
	}
	delay := retry.Backoff(attempt, p.first, maxDelay)
	if response != nil {
		delay = max(delay, retry.After(response.Header, time.Now()))
	}
	if delay > maxDelay {
		return -1, nil
	}
	return delay, nil
}

func isTemporary(response *http.Response, err error) bool {
	if err != nil {
		return isInterrupted(err)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// isInterrupted reports whether a connection ended in the middle.
func isInterrupted(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

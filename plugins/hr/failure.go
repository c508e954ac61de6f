package main

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

// vendorError is an answer of a vendor's other than 200.
type vendorError struct {
	status int
	code   string // the vendor's; often empty
	said   string // the vendor's own words
	text   string
	// retryable reports whether the same request may succeed later, after wait if that is not zero.
	retryable bool
	wait      time.Duration
	// renewal is the way to renew the credential, by the names of docs/abi.md.
	renewal map[string]string
}

func (e *vendorError) Error() string { return e.text }

// seconds is the wait, rounded up.
func (e *vendorError) seconds() int { return int(math.Ceil(e.wait.Seconds())) }

// isMissing reports an answer that is about what was asked for: there is no such person, or nothing of them in that
// month.
func (e *vendorError) isMissing() bool {
	return e.status == statusBadRequest || e.status == statusNotFound
}

// failure is the structured content of a failed call.
type failure struct {
	Error     string `json:"error"`
	Retryable bool   `json:"retryable"`
	// RetryAfter is the wait before the next try, in seconds; null where nobody says.
	RetryAfter *int `json:"retry_after_seconds"`
}

// failed turns an error into a result that says whether another try can help, and when.
func failed(err error) *pdk.Result {
	f := failure{Error: err.Error()}
	var refused *vendorError
	var host *abi.Error
	switch {
	case errors.As(err, &refused):
		f.Retryable = refused.retryable
		if refused.wait > 0 {
			seconds := refused.seconds()
			f.RetryAfter = &seconds
		}
	case errors.As(err, &host):
		f.Retryable = host.Code == abi.CodeNetwork || host.Code == abi.CodeTimeout
	case errors.Is(err, context.DeadlineExceeded):
		f.Retryable = true
	}
	return pdk.Text(f.Error).WithStructured(f).AsError()
}

// httpDate is the form of dates in HTTP headers (RFC 9110, section 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// retryAfter reads a Retry-After header, which has seconds or a date. It is zero without one and for a time that has
// passed.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := time.Parse(httpDate, value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

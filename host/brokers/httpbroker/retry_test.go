package httpbroker

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/pdk/abi"
)

// script answers the requests of a test one after the other, the last step over and over.
func script(steps ...any) (network, *[]time.Time) {
	times := new([]time.Time)
	return func(*http.Request) (*http.Response, error) {
		step := steps[min(len(*times), len(steps)-1)]
		*times = append(*times, time.Now())
		switch step := step.(type) {
		case error:
			return nil, step
		case int:
			return reply(step, "answer"), nil
		default:
			return reply(503, "later", fmt.Sprintf("Retry-After: %v", step)), nil
		}
	}, times
}

func TestRetries(t *testing.T) {
	t.Parallel()
	broken := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		method string
		rule   RuleOptions
		steps  []any
		tries  int
		status int // zero: an error
	}{
		"no need":               {steps: []any{200}, tries: 1, status: 200},
		"once":                  {steps: []any{503, 200}, tries: 2, status: 200},
		"twice":                 {steps: []any{502, 504, 200}, tries: 3, status: 200},
		"too many requests":     {steps: []any{429, 200}, tries: 2, status: 200},
		"three times":           {steps: []any{500, 501, 599, 200}, tries: 4, status: 200},
		"in vain":               {steps: []any{503}, tries: 4, status: 503},
		"connection":            {steps: []any{broken, io.EOF, 200}, tries: 3, status: 200},
		"connection, in vain":   {steps: []any{broken}, tries: 4},
		"server error":          {steps: []any{500, 200}, tries: 2, status: 200},
		"bad request":           {steps: []any{400}, tries: 1, status: 400},
		"forbidden":             {steps: []any{403}, tries: 1, status: 403},
		"not found":             {steps: []any{404}, tries: 1, status: 404},
		"HEAD":                  {method: "HEAD", steps: []any{503, 200}, tries: 2, status: 200},
		"PUT":                   {method: "PUT", steps: []any{503, 200}, tries: 2, status: 200},
		"DELETE":                {method: "DELETE", steps: []any{503, 200}, tries: 2, status: 200},
		"OPTIONS":               {method: "OPTIONS", steps: []any{503, 200}, tries: 2, status: 200},
		"POST":                  {method: "POST", steps: []any{503, 200}, tries: 1, status: 503},
		"POST, connection":      {method: "POST", steps: []any{broken, 200}, tries: 1},
		"PATCH":                 {method: "PATCH", steps: []any{429, 200}, tries: 1, status: 429},
		"more":                  {rule: RuleOptions{Retries: 5}, steps: []any{503}, tries: 6, status: 503},
		"none":                  {rule: RuleOptions{Retries: -1}, steps: []any{503}, tries: 1, status: 503},
		"certificate":           {steps: []any{x509.UnknownAuthorityError{}, 200}, tries: 1},
		"no such host":          {steps: []any{&net.DNSError{IsNotFound: true}, 200}, tries: 1},
		"address refused":       {steps: []any{&outbound.RefusedError{}, 200}, tries: 1},
		"asked to wait":         {steps: []any{"2", 200}, tries: 2, status: 200},
		"asked to wait for all": {steps: []any{"3600", 200}, tries: 1, status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, &Options{Rules: map[string]RuleOptions{"test": c.rule}}, everything("https://a.test"))
				n, times := script(c.steps...)
				n.under(b)
				a, err := do(t, b, &abi.HTTPRequest{Method: c.method, URL: "https://a.test"}, "")
				if len(*times) != c.tries {
					t.Errorf("%d tries, want %d", len(*times), c.tries)
				}
				if c.status == 0 && err == nil || c.status != 0 && (err != nil || a.Status != c.status) {
					t.Errorf("got %v, %v; want status %d", a.Response, err, c.status)
				}
			})
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, &Options{Rules: map[string]RuleOptions{"test": {Retries: 8}}}, everything("https://a.test"))
		n, times := script(503)
		n.under(b)
		mustGet(t, b, "https://a.test")
		longest := firstBackoff
		for i := 1; i < len(*times); i++ {
			if wait := (*times)[i].Sub((*times)[i-1]); wait < longest/2 || wait > longest {
				t.Errorf("wait %d took %v, want %v to %v", i, wait, longest/2, longest)
			}
			longest = min(2*longest, longestBackoff)
		}
	})
}

func TestRetriesEndWithTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, &Options{Limits: Limits{Time: time.Hour}}, everything("https://a.test"))
		n, times := script("60", 200)
		n.under(b)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := doCtx(t, ctx, b, &abi.HTTPRequest{URL: "https://a.test"}, "")
		wantCode(t, err, abi.CodeCanceled)
		if time.Since(start) != time.Second || len(*times) != 1 {
			t.Errorf("ended after %v and %d tries", time.Since(start), len(*times))
		}
	})
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, &Options{CacheBytes: -1, Rules: map[string]RuleOptions{"test": {Rate: 2, Burst: 2}}},
			everything("https://a.test"))
		n, times := script(200)
		n.under(b)
		start := time.Now()
		for range 4 {
			mustGet(t, b, "https://a.test")
		}
		for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
			if got := (*times)[i].Sub(start); got != want {
				t.Errorf("request %d went out after %v, want %v", i, got, want)
			}
		}
		_, err := do(t, b, &abi.HTTPRequest{URL: "https://a.test", TimeoutMS: 100}, "")
		wantCode(t, err, abi.CodeLimit, "rate limit of rule test, 2 requests a second")
	})
}

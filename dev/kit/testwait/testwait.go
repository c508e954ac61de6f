// Package testwait lets tests wait for other goroutines and processes. A wait has no time limit of its own, which a
// busy machine would miss: it ends shortly before the deadline of the test binary (go test -timeout), so that only a
// hang fails, and the test can say what it waited for.
package testwait

import (
	"context"
	"testing"
	"time"
)

const (
	// margin is the time before the deadline of the test binary that is left for messages and cleanups, or marginShare
	// of what remains, if that is less.
	margin      = time.Minute
	marginShare = 4
	// interval is the time between two looks of Until.
	interval = 5 * time.Millisecond
)

// Context returns a context that ends shortly before the deadline of the test binary, or never if there is none. Unlike
// t.Context it lives on in cleanups. It cannot be used in a bubble of testing/synctest, where nothing has to be waited
// for.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx := context.Background()
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return ctx
	}
	deadline, ok := limited.Deadline()
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-min(margin, time.Until(deadline)/marginShare)))
	t.Cleanup(cancel)
	return ctx
}

// Until polls until holds returns true, and reports whether it did before the Context of t ended. It is for what sends
// no event, such as the state of another process. A test that can wait for a channel selects on it and on
// Context(t).Done().
func Until(t testing.TB, holds func() bool) bool {
	t.Helper()
	end := Context(t).Done()
	for !holds() {
		select {
		case <-end:
			return false
		case <-time.After(interval):
		}
	}
	return true
}

// Package limits bounds what MCP clients may use: the rate of their messages, their requests in flight and their
// subscription streams.
//
// Limits are the numbers. A Limiter counts against them, for each client and for all together; its errors are of the
// type BusyError and safe to show. Clients are distinguished by a key: limits apply per client and not per session,
// because MCP 2026-07-28 has no sessions and before it a client may open as many as it likes.
package limits

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bound what clients may use. A client is a verified user, or without authentication a remote address, or the
// one at the other end of stdio.
type Limits struct {
	// Sessions is the most sessions (up to MCP 2025-11-25) of all replicas together, and the most event streams of this
	// replica: subscription streams (from 2026-07-28) and streams of another replica that are resumed here.
	// SessionsPerClient limits the sessions of one client. A session beyond a limit ends another one. Zero means 1,024,
	// and half of Sessions.
	Sessions, SessionsPerClient int
	// SessionIdle ends a session without requests. Zero means 30 min.
	SessionIdle time.Duration
	// Message is the largest message from a client, in bytes. Zero means 4 MiB.
	Message int64
	// Calls is the most requests in flight, CallsPerClient the requests of one client. Zero means 1,024 and 256.
	Calls, CallsPerClient int
	// Rate limits the requests per second of one client in the long run, Burst those at once. Zero means 1,000 and
	// twice Rate.
	Rate, Burst int
}

// WithDefaults returns l with its defaults filled in.
func (l Limits) WithDefaults() Limits {
	l.Sessions = cmp.Or(l.Sessions, 1024)
	l.SessionsPerClient = cmp.Or(l.SessionsPerClient, max(1, l.Sessions/2))
	l.SessionIdle = cmp.Or(l.SessionIdle, 30*time.Minute)
	l.Message = cmp.Or(l.Message, 4<<20)
	l.Calls = cmp.Or(l.Calls, 1024)
	l.CallsPerClient = cmp.Or(l.CallsPerClient, 256)
	l.Rate = cmp.Or(l.Rate, 1000)
	l.Burst = cmp.Or(l.Burst, 2*l.Rate)
	return l
}

// Check returns an error if a limit is negative.
func (l *Limits) Check() error {
	for name, value := range map[string]int64{
		"limit of sessions":       int64(l.Sessions),
		"sessions of one client":  int64(l.SessionsPerClient),
		"idle time of a session":  int64(l.SessionIdle),
		"size of a message":       l.Message,
		"limit of calls":          int64(l.Calls),
		"calls of one client":     int64(l.CallsPerClient),
		"requests a second":       int64(l.Rate),
		"requests in one instant": int64(l.Burst),
	} {
		if value < 0 {
			return fmt.Errorf("the %s is %d: give a positive one, or 0 for the default", name, value)
		}
	}
	return nil
}

// BusyError means that one client, or all clients together, have reached a limit. Its text is safe to show.
type BusyError struct {
	Reason string
	// Retry is the time after which trying again makes sense.
	Retry time.Duration
	// Everyone reports whether all clients together have reached the limit, not this one.
	Everyone bool
}

func (e *BusyError) Error() string { return e.Reason }

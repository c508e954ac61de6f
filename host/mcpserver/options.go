package mcpserver

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/trace"
)

// Options configures a Server. A nil *Options means all defaults.
type Options struct {
	// Name, Title, Version, Website and Icon (an SVG, as a URL or data URI) describe the server to clients. An empty
	// Name means "hako", an empty Version "dev".
	Name, Title, Version, Website, Icon string
	// Instructions tell a model how to use the tools. They may be empty; then Overview has them list what is on offer
	// to the client.
	Instructions string
	Overview     bool
	// Language is the language of titles and descriptions, a BCP 47 tag. Empty means "en".
	Language string
	// PageSize is the most entries of one page of a list. Zero means 1,000.
	PageSize int
	// ListTTL is how long clients may keep a list before they ask again (MCP 2026-07-28, caching). Zero means 10 s,
	// negative forbids keeping it.
	ListTTL time.Duration
	// Limits bound what clients may use.
	Limits Limits
	// Origins are web origins ("https://app.example.com") that may use the HTTP endpoint, apart from those on loopback
	// names. They alone also get CORS headers.
	Origins []string
	// Hosts are names, without port, under which the HTTP endpoint may be addressed, apart from loopback names.
	Hosts []string
	// TrustedProxies are the addresses of proxies, or networks in CIDR notation, whose X-Forwarded-For header says
	// where a request comes from, for limits and records.
	TrustedProxies []string
	// Sessions, if not nil, makes sessions (up to MCP 2025-11-25) and calls that wait for answers (from 2026-07-28)
	// those of all replicas: a client may send each request to another one.
	Sessions *sessionstore.Store
	// Auth says who may use the HTTP endpoint. Nil lets everyone in; CheckExposure holds that against the address.
	Auth *Auth
	// Now is the clock that tokens expire by. Nil means time.Now.
	Now func() time.Time
	// KeepAlive is the interval of comments on event streams that are otherwise silent. Zero means 15 s.
	KeepAlive time.Duration
	// Grace is how long calls in flight may still answer after a stdio client has closed its side. Zero means 5 s.
	Grace time.Duration
	// Conformance adds the fixtures that the MCP conformance suite expects of a server. They are of no other use.
	Conformance bool
	// Tracer makes spans of requests that are no calls; those of calls are the pipeline's. Nil makes none.
	Tracer *trace.Tracer
	// LoginFailed is told of requests whose token was refused: of ten at once and one every ten seconds from each
	// address, and of 200 and five a second from all of them. Nil is not told.
	LoginFailed func(FailedLogin)
	// Observer may be nil.
	Observer Observer
	// Logger receives the server's records. Nil discards them.
	Logger *slog.Logger
}

// Limits bound what clients may use. A client is a verified user, or without authentication a remote address, or the
// one at the other end of stdio.
type Limits struct {
	// Sessions is the most sessions (up to MCP 2025-11-25), of all replicas together, and the most subscription streams
	// of this one (from 2026-07-28), with those that go on here from another replica. SessionsPerClient is how many of
	// each one client may have. A session beyond a limit ends another one: see sessions.makeRoom. Zero means 1,024, and
	// half of Sessions.
	Sessions, SessionsPerClient int
	// SessionIdle ends a session without requests. Zero means 30 min.
	SessionIdle time.Duration
	// Message is the largest message from a client, in bytes. Zero means 4 MiB.
	Message int64
	// Calls is the most requests in flight, CallsPerClient those of one client. Zero means 1,024 and 256.
	Calls, CallsPerClient int
	// Rate is how many requests a second one client may send, in the long run; Burst how many at once. Zero means 1,000
	// and twice Rate.
	Rate, Burst int
}

func (o *Options) withDefaults() (Options, error) {
	var filled Options
	if o != nil {
		filled = *o
	}
	filled.Name = cmp.Or(filled.Name, "hako")
	filled.Version = cmp.Or(filled.Version, "dev")
	filled.Language = cmp.Or(filled.Language, "en")
	filled.PageSize = cmp.Or(filled.PageSize, 1000)
	filled.ListTTL = cmp.Or(filled.ListTTL, 10*time.Second)
	filled.KeepAlive = cmp.Or(filled.KeepAlive, 15*time.Second)
	filled.Grace = cmp.Or(filled.Grace, 5*time.Second)
	filled.Limits = filled.Limits.withDefaults()
	if filled.Observer == nil {
		filled.Observer = unobserved{}
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return filled, filled.check()
}

func (l Limits) withDefaults() Limits {
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

func (o *Options) check() error {
	for name, value := range map[string]int64{
		"page size":               int64(o.PageSize),
		"keep-alive interval":     int64(o.KeepAlive),
		"grace":                   int64(o.Grace),
		"limit of sessions":       int64(o.Limits.Sessions),
		"sessions of one client":  int64(o.Limits.SessionsPerClient),
		"idle time of a session":  int64(o.Limits.SessionIdle),
		"size of a message":       o.Limits.Message,
		"limit of calls":          int64(o.Limits.Calls),
		"calls of one client":     int64(o.Limits.CallsPerClient),
		"requests a second":       int64(o.Limits.Rate),
		"requests in one instant": int64(o.Limits.Burst),
	} {
		if value < 0 {
			return fmt.Errorf("mcp server: the %s is %d: give a positive one, or 0 for the default", name, value)
		}
	}
	return nil
}

// Package console is the page for people who operate the host: what runs, who calls what, what fails or waits for a
// yes, and the actions on it. It serves a page (page/, embedded) and the API that the page uses, below Path.
//
// People log in with a token, through an OpenID Connect provider, or on this machine with a one-time link. They are
// viewers, approvers or admins; what each may do is in the table of routes. Whatever guests, clients and vendors have
// said leaves here as text within JSON, and the page shows it as such.
package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/internal/attempts"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/host/store"
)

// Path is where the console is, below the address of the server.
const Path = "/console/"

// Options configures a Console. Host, Store, Approvals, Traffic and Configuration are needed.
type Options struct {
	Host      *host.Host
	Store     *store.Store
	Approvals *approval.Queue
	// Traffic is what the Host's observer tells of calls.
	Traffic *Traffic

	// Site is where people find the console, Logins who may log in. Reconfigure changes both later.
	Site     Site
	Sessions Sessions
	Logins   Logins

	// Consents reads the operator's consents as they are now. Nil: plugins cannot be approved here.
	Consents func() (Consents, error)
	// Settings returns what the operator has set for a plugin, with the limits for all in it. It may be nil.
	Settings func(plugin string) host.Settings
	// Check returns what keeps a plugin with these grants from working on this machine. It may be nil.
	Check func(plugin string, g grant.Grants) error

	// Journal is the audit log. Nil: there is none.
	Journal Journal
	// AuditOptional says whether what cannot be recorded is done all the same. Nil: it is not.
	AuditOptional func() bool

	// Configuration lists what is in force, as it may be shown.
	Configuration func() Configuration
	// Reload reads the configuration again for the person by. Nil: it cannot be.
	Reload func(ctx context.Context, by audit.Subject) (*Reloaded, error)

	// Upstreams and Credentials say how they stand. Each may be nil.
	Upstreams   func() []mcpclient.Status
	Credentials func(ctx context.Context) ([]credential.Status, error)
	// Problems are what an operator should look at, besides plugins, upstreams and credentials, in the language "en" or
	// "ja". It may be nil.
	Problems func(language string) []Problem

	Build Build
	// Now is the clock. Nil means Store's.
	Now func() time.Time
	// Logger receives faults. Nil discards them.
	Logger *slog.Logger
}

// Consents are the operator's; *grant.File is one.
type Consents interface {
	Consents() []grant.Consent
	Approve(ctx context.Context, c grant.Consent) error
	Revoke(ctx context.Context, name, by string) error
}

// Journal is where calls and actions are recorded.
type Journal interface {
	Append(ctx context.Context, e *audit.Event) error
	// Ready returns an error while nothing can be recorded.
	Ready() error
	// Last returns the newest n entries that match, oldest of them first.
	Last(ctx context.Context, q *audit.Query, n int) ([]*audit.Entry, error)
	// Verify looks for signs that the log is not as it was written.
	Verify(ctx context.Context) (*audit.Report, error)
}

// Build is what program this is.
type Build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Commit  string `json:"commit,omitempty"`
}

// Console serves the page and its API. It is safe for concurrent use.
type Console struct {
	options Options
	logger  *slog.Logger
	now     func() time.Time
	started time.Time

	site     atomic.Pointer[site]
	logins   atomic.Pointer[logins]
	attempts *attempts.Limiter
	sessions *sessions
	check    verification
	searches chan struct{}
	reloads  lastReload
	history  history

	// background ends with Run. What requests have begun and do not wait for goes on under it.
	background context.Context
	stop       context.CancelFunc
}

// New returns a Console, and makes its tables in the store. It fails with the store's error, or if the options are not
// usable.
func New(ctx context.Context, options *Options) (*Console, error) {
	c := &Console{options: *options, logger: options.Logger, now: options.Now, attempts: attempts.New(),
		searches: make(chan struct{}, maxSearches)}
	if options.Host == nil || options.Store == nil || options.Approvals == nil || options.Traffic == nil ||
		options.Configuration == nil {
		return nil, errors.New("console: Host, Store, Approvals, Traffic and Configuration are needed")
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = options.Store.Time
	}
	c.started = c.now()
	c.background, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	put, err := c.Reconfigure(options.Site, options.Logins)
	if err != nil {
		return nil, err
	}
	put()
	if c.sessions, err = newSessions(ctx, options.Store, options.Sessions); err != nil {
		return nil, err
	}
	return c, nil
}

// Reconfigure checks another site and other logins and returns what puts them in force. People who are logged in, and
// may not any more, are logged out. It fails if an address, a token or the provider is malformed.
func (c *Console) Reconfigure(at Site, l Logins) (put func(), err error) {
	site, err := newSite(at)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	checked, err := newLogins(l, site, c.now, c.logger)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return func() {
		c.site.Store(site)
		c.logins.Store(checked)
		c.endUnwanted(checked)
	}, nil
}

// Handler serves what is below Path.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, newPage())
	for _, r := range routes {
		mux.Handle(r.pattern(), c.handler(r))
	}
	return c.guarded(mux)
}

// Run keeps what people watch up to date, and figures of calls in the store, until ctx ends. Then it ends people's
// streams.
func (c *Console) Run(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var saving sync.WaitGroup
	saving.Go(func() { c.keepSaving(ctx) })
	w := &watcher{console: c}
	ended := c.options.Store.Changes(ctx, endedTopic)
	for {
		select {
		case <-ended:
			c.endStreams(ctx)
		case <-ctx.Done():
			c.stop()
			c.options.Traffic.hub.endAll(endShutdown)
			c.check.end()
			saving.Wait()
			return nil
		case <-ticker.C:
			w.look(ctx)
		}
	}
}

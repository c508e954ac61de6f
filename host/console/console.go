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

// Options configures a Console. Host, Store, Approvals, Traffic and Settings are needed.
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

	// Settings is the operator's configuration.
	Settings Settings
	// Consents holds the operator's consents. Nil: plugins cannot be approved here.
	Consents ConsentStore

	// Journal is the audit log. Nil: there is none.
	Journal Journal
	// Upstreams, Credentials and Problems are shown. Each may be nil.
	Upstreams   Upstreams
	Credentials Credentials
	Problems    Reporter

	Build Build
	// Now is the clock. Nil means Store's.
	Now func() time.Time
	// Logger receives faults. Nil discards them.
	Logger *slog.Logger
}

// Settings is the operator's configuration, as it is in force at the time of a call.
type Settings interface {
	// Configuration lists all values, as they may be shown.
	Configuration() Configuration
	// Plugin returns the settings of one plugin, with the limits for all plugins in them.
	Plugin(name string) host.Settings
	// AuditOptional reports whether operations that cannot be recorded are performed all the same.
	AuditOptional() bool
	// Reload reads the configuration again for the person by.
	Reload(ctx context.Context, by audit.Subject) (*Reloaded, error)
}

// ConsentStore holds the operator's consents.
type ConsentStore interface {
	// LoadConsents reads the consents as they are now.
	LoadConsents(ctx context.Context) (Consents, error)
	// CheckGrants says why a plugin with these grants would not work on this machine.
	CheckGrants(plugin string, g grant.Grants) error
}

// Upstreams are the upstream MCP servers. *mcpclient.Upstreams implements it.
type Upstreams interface{ Status() []mcpclient.Status }

// Credentials are what the host applies for plugins. *credential.Broker implements it.
type Credentials interface {
	Status(ctx context.Context) ([]credential.Status, error)
}

// Reporter lists what an operator should look at besides plugins, upstream servers and credentials, in the language "en"
// or "ja".
type Reporter interface {
	Problems(language string) []Problem
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
		options.Settings == nil {
		return nil, errors.New("console: Host, Store, Approvals, Traffic and Settings are needed")
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

// Package console is the web console for operators. It shows what runs, who calls what, what fails or waits for
// approval, and offers the actions on it.
//
// New returns a Console; its Handler serves a page (page/, embedded) and the page's API below Path. People log in with
// a token, through an OpenID Connect provider, or on this machine with a one-time link. They are viewers, approvers or
// admins; the table of routes says who may do what. Everything from guests, clients and vendors is sent as strings in
// JSON and shown as text.
package console

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/attempts"
)

// Path is the console's path at the server.
const Path = "/console/"

// Options configures a Console. Host, Store, Approvals, Traffic and Settings are required.
type Options struct {
	Host      *host.Host
	Store     *store.Store
	Approvals *approval.Queue
	// Traffic has the calls that the Host's observer reports.
	Traffic *Traffic

	// Site is the console's address, Logins names who may log in. Reconfigure changes both.
	Site     Site
	Sessions Sessions
	Logins   Logins

	// Settings is the operator's configuration.
	Settings Settings
	// Consents has the operator's consents. Nil means that plugins cannot be approved here.
	Consents ConsentStore

	// Folder is the plugin folder to which plugins are added. Nil means that they cannot be added here.
	Folder PluginFolder
	// Installed are the plugins in Folder, which can be updated, rolled back and removed. Nil means that they cannot.
	Installed Installed
	// Servers is searched for upstream servers. Nil means that there is no registry of them.
	Servers Servers
	// Indexes are searched for plugins to add. Nil means that there are none.
	Indexes Indexes

	// Proposals is the file for proposed rules of the policy. Empty means that none can be saved.
	Proposals string

	// Journal is the audit log. Nil means that there is none.
	Journal Journal
	// Policy is the policy. Nil means that it is not shown.
	Policy Policy
	// Upstreams, Credentials, Clients, ClientLogins, Slack and Problems are shown if they are not nil.
	Upstreams    Upstreams
	Credentials  Credentials
	Clients      Clients
	ClientLogins ClientLogins
	Slack        func() []slackbot.Status
	Problems     Reporter

	Build Build
	// Now is the clock. Nil means the Store's.
	Now func() time.Time
	// Logger receives errors. Nil discards them.
	Logger *slog.Logger
}

// Settings is the operator's current configuration.
type Settings interface {
	// Configuration lists all settings, without secrets.
	Configuration() Configuration
	// Plugin returns the settings of one plugin, including the limits for all plugins.
	Plugin(name string) host.Settings
	// AuditOptional reports whether operations that cannot be recorded are performed.
	AuditOptional() bool
	// Tokens lists the tokens of the configuration, those of MCP clients without a role.
	Tokens() []bearer.Token
	// Issuers lists the issuers of the configuration whose users can be blocked.
	Issuers() []string
	// Toolsets are the toolsets in force. Nil means that there are none.
	Toolsets() *toolset.Config
	// Reload reloads the configuration for the person by.
	Reload(ctx context.Context, by audit.Subject) (*Reloaded, error)
}

// ConsentStore stores the operator's consents.
type ConsentStore interface {
	// LoadConsents reads the current consents.
	LoadConsents(ctx context.Context) (Consents, error)
	// CheckGrants returns why a plugin with these grants would not work on this machine.
	CheckGrants(plugin string, g grant.Grants) error
}

// Upstreams has the upstream MCP servers. *mcpclient.Upstreams implements it.
type Upstreams interface{ Status() []mcpclient.Status }

// Credentials has the credentials that the host applies for plugins. *credential.Broker implements it.
type Credentials interface {
	Status(ctx context.Context) ([]credential.Status, error)
}

// Reporter lists problems besides those of plugins, upstream servers and credentials, in the language "en" or "ja".
type Reporter interface {
	Problems(language string) []Problem
}

// Consents are the operator's consents, like *grant.File.
type Consents interface {
	Consents() []grant.Consent
	Approve(ctx context.Context, c grant.Consent) error
	Revoke(ctx context.Context, name, by string) error
	Decline(ctx context.Context, m *manifest.Manifest, digest, by string) error
	Remove(ctx context.Context, name string) error
}

// Journal is the audit log.
type Journal interface {
	Append(ctx context.Context, e *audit.Event) error
	// Ready returns an error while nothing can be recorded.
	Ready() error
	// Read yields the matching entries, oldest first. It ends after an error.
	Read(ctx context.Context, q *audit.Query) iter.Seq2[*audit.Entry, error]
	// Last returns the newest n matching entries, oldest first.
	Last(ctx context.Context, q *audit.Query, n int) ([]*audit.Entry, error)
	// Verify looks for signs that the log was changed.
	Verify(ctx context.Context) (*audit.Report, error)
}

// Build identifies the program.
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
	exports  chan struct{}
	adding   chan struct{}
	reloads  lastReload
	history  history

	// background ends with Run. Work that requests start and do not wait for runs under it.
	background context.Context
	stop       context.CancelFunc
}

// New returns a Console and creates its tables in the store. It fails with the store's error, or for invalid options.
func New(ctx context.Context, options *Options) (*Console, error) {
	c := &Console{options: *options, logger: options.Logger, now: options.Now, attempts: attempts.New(),
		searches: make(chan struct{}, maxSearches), exports: make(chan struct{}, maxExports),
		adding: make(chan struct{}, 1)}
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

// Reconfigure checks a new site and new logins and returns a function that applies them. It logs out people who may no
// longer log in. It fails for an invalid address, token or provider.
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

// Handler serves the paths below Path.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, newPage())
	for _, r := range routes {
		mux.Handle(r.pattern(), c.handler(r))
	}
	return c.guarded(mux)
}

// Run updates the streams of open pages and stores counts of calls until ctx ends. Then it ends the streams.
func (c *Console) Run(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var work sync.WaitGroup
	work.Go(func() { c.keepSaving(ctx) })
	if c.options.Store.Shared() {
		work.Go(func() { c.shareRunning(ctx) })
	}
	w := &watcher{console: c}
	ended, tokens := c.options.Store.Changes(ctx, endedTopic), c.options.Store.Changes(ctx, bearer.Topic)
	for {
		select {
		case <-ended:
			c.endStreams(ctx)
		case <-tokens:
			c.endRevoked(ctx)
		case <-ctx.Done():
			c.stop()
			c.options.Traffic.hub.endWhere(endShutdown, func(*stream) bool { return true })
			c.check.end()
			work.Wait()
			return nil
		case <-ticker.C:
			w.look(ctx)
		}
	}
}

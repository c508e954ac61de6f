package server

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/internal/address"
)

// ConsoleAddress is the address on which the console listens.
func ConsoleAddress(c *config.Config) string {
	if c.Console.Address != "" {
		return c.Console.Address
	}
	return c.HTTP.Address
}

// ConsoleURL is the URL of the console's server for people, without a slash at its end.
func ConsoleURL(c *config.Config) string {
	if c.Console.URL != "" {
		return strings.TrimSuffix(c.Console.URL, "/")
	}
	return localURL(c)
}

// localURL is the URL of the address that the console listens on.
func localURL(c *config.Config) string {
	at := c.HTTP
	at.Address = ConsoleAddress(c)
	return strings.TrimSuffix(at.URL(), mcpserver.Path)
}

// ConsoleEnabled reports whether there is a console. Where console.enabled is not set, there is one if only this
// machine can reach it or if logins are configured.
func ConsoleEnabled(c *config.Config) bool {
	if c.Origin("console.enabled") != config.OriginDefault {
		return c.Console.Enabled
	}
	return address.IsLoopbackHostport(ConsoleAddress(c)) || c.Console.HasLogins()
}

// CheckConsole explains why the console is not usable, or not safe at its address.
func CheckConsole(c *config.Config) error {
	if !ConsoleEnabled(c) {
		return nil
	}
	if err := consoleSite(c).Check(); err != nil {
		return fmt.Errorf("configuration: console: %w", err)
	}
	if oidc := c.Console.Logins(nil).OIDC; oidc != nil {
		if err := oidc.Check(); err != nil {
			return fmt.Errorf("configuration: console.oidc: %w", err)
		}
	}
	switch {
	case address.IsLoopbackHostport(ConsoleAddress(c)):
		return nil
	case c.HTTP.TLSCert == "" && !strings.HasPrefix(c.Console.URL, "https://"):
		return fmt.Errorf("configuration: console: at the address %s logins would cross the network in the clear: set "+
			"http.tls.cert and http.tls.key, or console.url to the https address of the proxy that stands before it",
			ConsoleAddress(c))
	}
	return nil
}

// consoleSite returns the addresses of a configuration's console.
func consoleSite(c *config.Config) console.Site {
	return console.Site{URL: c.Console.URL, Local: localURL(c), Hosts: c.HTTP.Hosts, Proxies: c.HTTP.TrustedProxies}
}

// CheckExec explains why commands that are granted to a plugin cannot run on this machine; nil if they can, or if g is
// nil.
func CheckExec(plugin string, g *grant.Exec) error {
	if g == nil || g.Unconfined {
		return nil
	}
	return execbroker.Unconfinable(plugin, g)
}

// consoleFrontend is the part with the console. It also answers the console's requests about the configuration.
type consoleFrontend struct {
	server      *Server
	traffic     *console.Traffic
	upstreams   *upstreams
	credentials *credentials
	mcp         *mcpFrontend
	slack       *slackFrontend

	console *console.Console
	// local is the URL of the server's own address.
	local string
}

func (f *consoleFrontend) start(ctx context.Context) (err error) {
	s := f.server
	f.local = localURL(s.Config)
	logins, err := authserver.OpenLogins(ctx, s.governance.Store)
	if err != nil {
		return err
	}
	o := &console.Options{
		Host: s.plugins.host.Load(), Store: s.governance.Store, Approvals: s.governance.Approvals, Traffic: f.traffic,
		Site: consoleSite(s.Config), Sessions: s.Config.Console.Sessions,
		Logins:   s.Config.Console.Logins(s.governance.tokens),
		Settings: f, Consents: f, Upstreams: f.upstreams, Credentials: f.credentials, Problems: s,
		Clients: f.mcp.mcp, ClientLogins: logins,
		Slack: f.slack.statuses, Folder: pluginFolder{s.reloader.config}, Installed: pluginFolder{s.reloader.config},
		Indexes: &pluginIndexes{config: s.reloader.config}, Servers: serverRegistry{s.reloader.config},
		Policy: shownPolicy{s}, Proposals: policy.ProposalsPath(s.Config.Policy),
		Build: s.Build, Logger: s.Logger,
	}
	if log := s.governance.audit; log != nil {
		o.Journal = journal{log, AuditPlace(ctx, s.Config, s.governance.Store, s.Logger)}
	}
	if f.console, err = console.New(ctx, o); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// run updates the pages that people watch.
func (f *consoleFrontend) run(ctx context.Context) error { return f.console.Run(ctx) }

func (*consoleFrontend) keys() []string {
	return []string{
		"console.tokens", "console.oidc", "console.url", "http.hosts", "http.trustedProxies", "outbound.proxy",
		"index", "registries", "signatures", "signers",
	}
}

// prepare changes where people find the console and who may log in. It listens where it did.
func (f *consoleFrontend) prepare(_ context.Context, next *config.Config) (*change, error) {
	if err := CheckConsole(next); err != nil {
		return nil, err
	}
	site := consoleSite(next)
	site.Local = f.local
	apply, err := f.console.Reconfigure(site, next.Console.Logins(f.server.governance.tokens))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return silently(apply), nil
}

// Configuration implements console.Settings.
func (f *consoleFrontend) Configuration() console.Configuration {
	c := f.server.reloader.config()
	shown := console.Configuration{File: c.Name()}
	for _, e := range c.Entries() {
		shown.Items = append(shown.Items, console.Setting(e))
	}
	return shown
}

// Plugin implements console.Settings.
func (f *consoleFrontend) Plugin(name string) host.Settings {
	c := f.server.reloader.config()
	s := c.Plugin[name]
	s.Limits = s.Limits.Or(c.Limits)
	return s
}

// Tokens implements console.Settings.
func (f *consoleFrontend) Tokens() []bearer.Token {
	return ConfiguredTokens(f.server.reloader.config())
}

// Issuers implements console.Settings.
func (f *consoleFrontend) Issuers() []string { return issuers(f.server.reloader.config()) }

// ConfiguredTokens lists the tokens of a configuration, those of MCP clients first.
func ConfiguredTokens(c *config.Config) []bearer.Token {
	return slices.Concat(c.HTTP.Auth.Tokens, c.Console.Tokens)
}

// Toolsets implements console.Settings.
func (f *consoleFrontend) Toolsets() *toolset.Config { return f.server.reloader.config().Toolsets }

// AuditOptional implements console.Settings.
func (f *consoleFrontend) AuditOptional() bool { return f.server.reloader.config().Audit.Optional }

// Reload implements console.Settings.
func (f *consoleFrontend) Reload(ctx context.Context, by audit.Subject) (*console.Reloaded, error) {
	return f.server.reloader.reload(ctx, by)
}

// LoadConsents implements console.ConsentStore.
func (f *consoleFrontend) LoadConsents(ctx context.Context) (console.Consents, error) {
	return LoadConsents(ctx, f.server.reloader.config(), f.server.governance.Store)
}

// CheckGrants implements console.ConsentStore.
func (f *consoleFrontend) CheckGrants(plugin string, g grant.Grants) error {
	return CheckExec(plugin, g.Exec)
}

// LinkURL returns a link that logs in the person who opens it on this machine. Proxies do not forward it, so it has the
// server's own address.
func LinkURL(c *config.Config, secret string) string { return console.LinkURL(localURL(c), secret) }

// ConsoleLink returns the URL of the console on an open server; empty if there is none. Where no logins are configured,
// withLogin adds a login link. It must not be used for a log that others can read.
func (s *Server) ConsoleLink(ctx context.Context, withLogin bool) (url string, needsLink bool, err error) {
	if s.console == nil {
		return "", false, nil
	}
	at := *s.Config
	at.HTTP = s.web.http // with the port that was assigned
	if needsLink = !at.Console.HasLogins(); !needsLink || !withLogin {
		return ConsoleURL(&at) + console.Path, needsLink, nil
	}
	secret, err := console.NewLink(ctx, s.governance.Store, audit.ProcessUser(), s.governance.Store.Time())
	return LinkURL(&at, secret), false, err
}

// journal is the audit log for the console.
type journal struct {
	*audit.Log
	place audit.Reader
}

// Read implements console.Journal.
func (j journal) Read(ctx context.Context, q *audit.Query) iter.Seq2[*audit.Entry, error] {
	return j.place.Read(ctx, q)
}

// Last implements console.Journal.
func (j journal) Last(ctx context.Context, q *audit.Query, n int) ([]*audit.Entry, error) {
	return j.place.Last(ctx, q, n)
}

// Verify implements console.Journal.
func (j journal) Verify(ctx context.Context) (*audit.Report, error) { return j.place.Verify(ctx, nil) }

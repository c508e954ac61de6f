package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/metrics"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

func (a *app) consoleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print a link that opens the console of hako serve",
		Long: `Print a link that logs you in to the console of hako serve, once and within 10 minutes. It needs nothing but the store, so it works while
hako serves, for whoever may write there. Where logins are configured (console.tokens, console.oidc), the console is opened with them, and
this prints where it is.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if err := checkConsole(c); err != nil {
				return err
			}
			if !consoleOn(c) {
				return errors.New("the console is off: set console.enabled, and logins where other machines can reach it (docs/console.md)")
			}
			if c.Console.HasLogins() {
				err := printf(a.stdout, "%s%s\n", consoleURL(c), console.Path)
				return err
			}
			return a.printLink(cmd.Context(), c)
		},
	}
	cmd.Flags().String("http", "127.0.0.1:8420", "where hako serve is, if not where the configuration says")
	config.Flag(cmd.Flags(), "http", "http.address")
	return cmd
}

func (a *app) printLink(ctx context.Context, c *config.Config) error {
	return a.withStore(ctx, c, func(s *store.Store) error {
		secret, err := console.NewLink(ctx, s, audit.ProcessUser(), s.Time())
		if err != nil {
			return err
		}
		if err = printf(a.stdout, "%s\n", console.LinkURL(consoleURL(c), secret)); err == nil &&
			!listens(consoleAddress(c)) {
			printf(a.stderr, "Nothing listens at %s now: the link works once hako serve does.\n", consoleAddress(c))
		}
		return err
	})
}

func listens(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	return err == nil && connection.Close() == nil
}

// consoleAddress is where the console listens.
func consoleAddress(c *config.Config) string {
	if c.Console.Address != "" {
		return c.Console.Address
	}
	return c.HTTP.Address
}

// consoleURL is where people find the server of the console, without a slash at its end.
func consoleURL(c *config.Config) string {
	if c.Console.URL != "" {
		return strings.TrimSuffix(c.Console.URL, "/")
	}
	return localURL(c)
}

// localURL is the address that the server of the console has itself.
func localURL(c *config.Config) string {
	at := c.HTTP
	at.Address = consoleAddress(c)
	return strings.TrimSuffix(at.URL(), mcpserver.Path)
}

// consoleSite is where people find the console.
func consoleSite(c *config.Config) console.Site {
	return console.Site{URL: c.Console.URL, Local: localURL(c), Hosts: c.HTTP.Hosts, Proxies: c.HTTP.TrustedProxies}
}

// consoleOn reports whether there is a console: where nothing is said, if only this machine can reach it, or if logins
// are configured.
func consoleOn(c *config.Config) bool {
	if c.Origin("console.enabled") != config.OriginDefault {
		return c.Console.Enabled
	}
	return isLoopback(consoleAddress(c)) || c.Console.HasLogins()
}

// checkConsole refuses a console that is not usable, or not safe where it is.
func checkConsole(c *config.Config) error {
	if !consoleOn(c) {
		return nil
	}
	if err := consoleSite(c).Check(); err != nil {
		return fmt.Errorf("configuration: console: %w", err)
	}
	if oidc := c.Console.Logins().OIDC; oidc != nil {
		if err := oidc.Check(); err != nil {
			return fmt.Errorf("configuration: console.oidc: %w", err)
		}
	}
	switch {
	case isLoopback(consoleAddress(c)):
		return nil
	case !c.Console.HasLogins():
		return fmt.Errorf("configuration: console: address %s can be reached from other machines, and nobody has a login: name tokens (console.tokens) or a provider "+
			"(console.oidc), listen on 127.0.0.1, or set console.enabled: false", consoleAddress(c))
	case c.HTTP.TLSCert == "" && !strings.HasPrefix(c.Console.URL, "https://"):
		return fmt.Errorf("configuration: console: at the address %s logins would cross the network in the clear: set http.tls.cert and http.tls.key, or console.url to the "+
			"https address of the proxy that stands before it", consoleAddress(c))
	}
	return nil
}

// consoleFrontend is the console where there is one. A nil consoleFrontend does nothing.
type consoleFrontend struct {
	console *console.Console
	// local is the server's own address, links says that people log in with one-time links.
	local string
	links bool
}

// newTraffic returns what the console has to know of calls; nil where there is no console.
func newTraffic(c *config.Config, flags serveFlags) *console.Traffic {
	if !flags.http || !consoleOn(c) {
		return nil
	}
	return console.NewTraffic()
}

// observers are the metrics, and what the console knows of calls.
type observers struct {
	*metrics.Metrics
	traffic *console.Traffic
}

// CallStarted tells both.
func (o observers) CallStarted(method string) {
	o.Metrics.CallStarted(method)
	o.traffic.CallStarted(method)
}

// CallEnded tells both.
func (o observers) CallEnded(r pipeline.Record) {
	o.Metrics.CallEnded(r)
	o.traffic.CallEnded(r)
}

// tellConsole makes a host tell the console of its calls, besides the metrics. traffic is nil where there is no
// console.
func tellConsole(o *host.Options, traffic *console.Traffic) {
	switch numbers, counted := o.Observer.(*metrics.Metrics); {
	case traffic == nil:
	case counted:
		o.Observer = observers{numbers, traffic}
	default:
		o.Observer = traffic
	}
}

// newConsole makes the console; nil where traffic is.
func (s *service) newConsole(ctx context.Context, c *config.Config, g *government, credentials *credential.Broker,
	traffic *console.Traffic) (*consoleFrontend, error) {
	if traffic == nil {
		return nil, nil
	}
	b := thisBuild()
	o := &console.Options{
		Host: s.host, Store: g.store, Approvals: g.approvals, Traffic: traffic,
		Site:     consoleSite(c),
		Sessions: c.Console.Sessions, Logins: consoleLogins(c),
		Consents: func() (console.Consents, error) {
			return loadConsents(context.WithoutCancel(ctx), s.reloader.config(), g.store)
		},
		Settings:      func(plugin string) host.Settings { return consoleSettings(s.reloader.config(), plugin) },
		Check:         func(plugin string, g grant.Grants) error { return checkExec(plugin, g.Exec) },
		AuditOptional: func() bool { return s.reloader.config().Audit.Optional },
		Configuration: func() console.Configuration { return consoleConfiguration(s.reloader.config()) },
		Reload:        s.reloader.forConsole,
		Upstreams:     s.upstreamStatus, Credentials: credentials.Status,
		Problems: func(language string) []console.Problem {
			return slices.Concat(g.problems(language), s.reloader.problems(language), s.cert.problems(language))
		},
		Build: console.Build{Version: b.Version, Go: b.Go, Commit: b.Commit}, Logger: s.logger,
	}
	if g.audit != nil {
		o.Journal = journal{g.audit, auditPlace(ctx, c, g.store, s.logger)}
	}
	made, err := console.New(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return &consoleFrontend{made, localURL(c), o.Logins.Links}, nil
}

// consoleLogins says who may log in. Where nothing is configured, whoever sits at this machine and can write to the
// store may.
func consoleLogins(c *config.Config) console.Logins {
	l := c.Console.Logins()
	l.Links = !c.Console.HasLogins() && isLoopback(consoleAddress(c))
	return l
}

// consoleSettings are the operator's for a plugin.
func consoleSettings(c *config.Config, plugin string) host.Settings {
	s := c.Plugin[plugin]
	s.Limits = s.Limits.Or(c.Limits)
	return s
}

// consoleConfiguration is what hako config show shows.
func consoleConfiguration(c *config.Config) console.Configuration {
	shown := console.Configuration{File: configName(c)}
	for _, e := range c.Entries() {
		shown.Items = append(shown.Items, console.Setting(e))
	}
	return shown
}

// upstreamStatus is how the upstream servers stand.
func (s *service) upstreamStatus() []mcpclient.Status {
	return s.upstreams.upstreams.Status()
}

// problems are what somebody who operates the host should look at.
func (g *government) problems(language string) []console.Problem {
	if err := g.policy.Err(); err != nil {
		return []console.Problem{{Kind: "policy", Text: err.Error(), Remedy: manifest.Text{
			"en": "Mend the policy file (hako policy check); until then the policy before stays in force.",
			"ja": "ポリシーファイルを修正してください (hako policy check)。それまでは以前のポリシーが有効です。",
		}.In(language)}}
	}
	return nil
}

// journal is the audit log for the console.
type journal struct {
	*audit.Log
	place audit.Place
}

// Last reads the newest records.
func (j journal) Last(ctx context.Context, q *audit.Query, n int) ([]*audit.Entry, error) {
	return j.place.Last(ctx, q, n)
}

// Verify reads the whole log.
func (j journal) Verify(ctx context.Context) (*audit.Report, error) { return j.place.Verify(ctx, nil) }

// handle puts the console in front of the others, unless it has an address of its own.
func (d *consoleFrontend) handle(c *config.Config, others http.Handler) http.Handler {
	if d == nil || c.Console.Address != "" {
		return others
	}
	mux := http.NewServeMux()
	mux.Handle(console.Path, d.console.Handler())
	mux.Handle("/", others)
	return mux
}

// run keeps what people watch up to date until ctx ends.
func (d *consoleFrontend) run(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.console.Run(ctx)
}

// place says where the console is; empty where there is no console. Where people log in by links, a person at a
// terminal gets one, and a log none: whoever reads it later must not come in.
func (d *consoleFrontend) place(ctx context.Context, c *config.Config, g *government, w *web, terminal bool) (string,
	error) {
	if d == nil {
		return "", nil
	}
	at := *c
	at.HTTP = w.http // with the port that was free
	switch url := consoleURL(&at) + console.Path; {
	case !d.links:
		return url, nil
	case !terminal:
		return url + " (hako console prints a link that logs you in)", nil
	}
	secret, err := console.NewLink(ctx, g.store, audit.ProcessUser(), g.store.Time())
	return console.LinkURL(consoleURL(&at), secret), err
}

// listen opens the console's own address, if it has one.
func (d *consoleFrontend) listen(w *web, c *config.Config, cert *certificate, logger *slog.Logger) error {
	if d == nil || c.Console.Address == "" {
		return nil
	}
	mux := w.health()
	mux.Handle(console.Path, d.console.Handler())
	if _, err := w.add("console.address", c.Console.Address, mux, logger); err != nil {
		return err
	}
	if cert != nil {
		w.servers[len(w.servers)-1].TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}
	}
	return nil
}

// consolePart takes up where people find the console, and who may log in. It listens where it did.
func consolePart(d *consoleFrontend) part {
	return part{liveKeys.console, func(_ context.Context, next *config.Config) (func() []string, error) {
		if err := checkConsole(next); err != nil {
			return nil, err
		}
		site := consoleSite(next)
		site.Local = d.local
		put, err := d.console.Reconfigure(site, consoleLogins(next))
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		return quiet(put), nil
	}}
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/processors"
	"github.com/hako-run/hako/internal/strictyaml"
)

// HostKeys are the configuration keys whose changes host.Host.Reconfigure applies, each with all keys below it.
var HostKeys = []string{
	"plugins", "shipped", "allowPaths", "consents", "updates", "plugin", "tenants", "limits", "ceilings",
	"maxPluginSize", "mountQuota", "mock", "locale", "toolset", "toolsets",
	"outbound.proxy", "audit.optional", "audit.fields",
}

// HostOptions returns the options of the host that a configuration describes. shipped are the plugins that come with
// the program. A disabled plugin that is not among them is an error, unless there are none at all.
func HostOptions(c *config.Config, shipped []shipped.Plugin) (*host.Options, error) {
	options := &host.Options{
		Folders:       c.Plugins,
		ShippedMounts: c.ShippedMounts,
		Roots:         grant.Roots{Dirs: c.AllowPaths, Hidden: c.OwnFiles()},
		Consents:      c.Consents,
		Updates:       grant.UpdateRule(c.Updates),
		CacheDir:      c.Cache,
		DataDir:       c.StateDir(),
		Settings:      c.Plugin,
		Tenants:       c.Tenants,
		Proxy:         c.ProxyURL(),
		Limits:        c.Limits,
		Ceilings:      c.Ceilings,
		MaxPluginSize: c.MaxPluginSize,
		MountQuota:    c.MountQuota,
		MemoryBudget:  c.MemoryBudget,
		Processors:    processors.Guests(),
		Mock:          c.Mock,
		Locale:        c.Locale,
		Toolsets:      c.Toolsets,
		AuditOptional: c.Audit.Optional,
		AuditFields:   c.Audit.Fields,
		Environ:       os.Environ(),
	}
	if err := options.Roots.Check(); err != nil {
		return nil, fmt.Errorf("configuration: allowPaths: %w", err)
	}
	if !c.ShippedOn || len(shipped) == 0 {
		return options, nil
	}
	known := map[string]bool{}
	for _, plugin := range shipped {
		name := plugin.Name()
		known[name] = true
		if !slices.Contains(c.ShippedDisabled, name) {
			options.Shipped = append(options.Shipped, host.Shipped(plugin))
		}
	}
	for _, name := range c.ShippedDisabled {
		if !known[name] {
			return nil, fmt.Errorf("configuration: shipped.disabled: hako ships no plugin %q: name some of %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return options, nil
}

// NewHost makes the host that a configuration describes and loads its plugins; change may change the options before.
// The caller closes it.
func NewHost(
	ctx context.Context, c *config.Config, shipped []shipped.Plugin, logger *slog.Logger, change func(*host.Options),
) (*host.Host, error) {
	options, err := HostOptions(c, shipped)
	if err != nil {
		return nil, err
	}
	options.Logger = logger
	if change != nil {
		change(options)
	}
	if options.Credentials == nil {
		if options.Credentials, err = NewCredentials(c, logger, nil); err != nil {
			return nil, err
		}
	}
	h, err := host.New(options)
	if err != nil {
		return nil, err
	}
	if err := h.Load(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// LoadConsents reads the consents of the configuration: from the store s if replicas share it, otherwise from the file.
func LoadConsents(ctx context.Context, c *config.Config, s *store.Store) (*grant.File, error) {
	if s == nil || !s.Shared() {
		return grant.Load(c.Consents)
	}
	return grant.LoadStored(ctx, s, c.Consents)
}

// Silent is above every level of a log.
const Silent = slog.Level(math.MaxInt32)

// plugins is the part with the host, which loads, watches and calls the plugins.
type plugins struct {
	server      *Server
	credentials *credentials
	// renewed reports whether a background job renews the credentials, so that the host does not.
	renewed bool
	// traffic receives calls for the console. Nil: there is no console.
	traffic *console.Traffic

	host atomic.Pointer[host.Host]
}

func (p *plugins) start(ctx context.Context) error {
	s, g := p.server, p.server.governance
	if s.QuietStart {
		s.Level.Set(Silent)
	}
	h, err := NewHost(ctx, s.Config, s.Shipped, s.Logger, func(o *host.Options) {
		o.Credentials, o.Changed = p.credentials, g.pluginChanged
		if p.renewed {
			o.Credentials = renewedCredentials{p.credentials}
		}
		s.observability.observeHost(o)
		g.Apply(o)
		if g.results != nil {
			s.observability.metrics.ShowResults(g.results)
		}
		if p.traffic != nil {
			if m, ok := o.Observer.(*metrics.Metrics); ok {
				o.Observer = observers{m, p.traffic}
			} else {
				o.Observer = p.traffic
			}
		}
	})
	s.Level.Set(LogLevels[s.Config.LogLevel])
	if err != nil {
		return err
	}
	if err := g.recordStart(h.Plugins()); err != nil {
		return errors.Join(err, h.Close())
	}
	p.host.Store(h)
	s.observability.metrics.Show(h)
	s.observability.metrics.ShowCredentials(p.credentials.Broker)
	warnUnknownPlugins(s.Config, h.Plugins(), s.Logger)
	return nil
}

func (p *plugins) stop() error {
	p.server.governance.recordStop()
	return p.host.Load().Close()
}

// run watches the plugin folders.
func (p *plugins) run(ctx context.Context) error { return p.host.Load().Watch(ctx) }

func (*plugins) keys() []string { return append([]string{"lock", "credentials"}, HostKeys...) }

func (p *plugins) prepare(ctx context.Context, next *config.Config) (*change, error) {
	options, err := HostOptions(next, p.server.Shipped)
	if err != nil {
		return nil, err
	}
	h := p.host.Load()
	apply, err := h.Reconfigure(options)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return &change{apply: func() (warnings []string) {
		before := h.Plugins()
		if err := apply(ctx); err != nil {
			warnings = append(warnings, err.Error())
		}
		warnUnknownPlugins(next, h.Plugins(), p.server.Logger)
		for _, now := range h.Plugins() {
			same := slices.ContainsFunc(before, func(s host.Status) bool {
				return s.Path == now.Path && s.State == now.State && s.Reason == now.Reason
			})
			if !same && now.State != host.Active {
				warnings = append(warnings, fmt.Sprintf("plugin %s is %s: %s", now.Title(), now.State, now.Reason))
			}
		}
		return warnings
	}}, nil
}

// warnUnknownPlugins logs settings for plugins that are not there.
func warnUnknownPlugins(c *config.Config, plugins []host.Status, logger *slog.Logger) {
	var known []string
	for _, plugin := range plugins {
		known = append(known, plugin.Name)
	}
	for name := range c.Plugin {
		if near := strictyaml.Nearest(name, known); near == "" {
			logger.Warn("there is no such plugin: its settings have no effect", "plugin", name)
		} else if near != name {
			logger.Warn("there is no such plugin: its settings have no effect", "plugin", name, "nearest", near)
		}
	}
}

// observers passes calls to the metrics and to the console.
type observers struct {
	*metrics.Metrics
	traffic *console.Traffic
}

// CallStarted implements pipeline.Observer.
func (o observers) CallStarted(r *pipeline.Running) {
	o.Metrics.CallStarted(r)
	o.traffic.CallStarted(r)
}

// CallEnded implements pipeline.Observer.
func (o observers) CallEnded(r pipeline.Record) {
	o.Metrics.CallEnded(r)
	o.traffic.CallEnded(r)
}

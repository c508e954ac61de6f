package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/internal/config"
)

// liveKeys are those that each part takes up, with all below them. Every other key needs a restart.
var liveKeys = struct {
	log, traces, credentials, plugins, upstreams, approvals, frontend, tls, slack, console,
	agent []string
}{
	log:         []string{"log.level"},
	traces:      []string{"outbound.proxy"},
	credentials: []string{"credentials", "tenants", "outbound.proxy"},
	plugins: []string{
		"plugins", "shipped", "allowPaths", "consents", "updates", "plugin", "tenants", "limits", "ceilings",
		"maxPluginSize", "mountQuota", "mock", "locale", "outbound.proxy",
		"credentials", "audit.optional", "audit.fields",
	},
	upstreams: []string{"upstreams", "upstreamsEnabled", "limits", "outbound.proxy"},
	approvals: []string{"approvals"},
	frontend: []string{"mcp.instructions", "mcp.listTTL", "mcp.limits", "locale", "http.auth", "http.origins",
		"http.hosts", "http.trustedProxies", "outbound.proxy"},
	tls: []string{"http.tls"},
	console: []string{"console.tokens", "console.oidc", "console.url", "http.hosts", "http.trustedProxies",
		"outbound.proxy"},
	agent: []string{"agent", "tenants", "locale", "outbound.proxy"},
	slack: []string{"slack", "llm", "chat", "locale", "outbound.proxy"},
}

// Keys that one command alone uses, with all below them: to the other, their changes do not matter.
var (
	agentKeys = []string{"agent"}
	serveKeys = []string{"http", "mcp", "console", "slack", "llm", "chat"}
)

// quiet is what puts something in force that has nothing to say about it.
func quiet(put func()) func() []string {
	return func() []string { put(); return nil }
}

func logPart(level *slog.LevelVar) part {
	return part{liveKeys.log, func(_ context.Context, next *config.Config) (func() []string, error) {
		return quiet(func() { level.Set(logLevels[next.LogLevel]) }), nil
	}}
}

func tracesPart(o *observation) part {
	return part{liveKeys.traces, func(_ context.Context, next *config.Config) (func() []string, error) {
		return quiet(func() { o.proxy.Store(next.ProxyURL()) }), nil
	}}
}

// credentialsPart comes before the plugins that ask for them.
func credentialsPart(b *credential.Broker) part {
	return part{liveKeys.credentials, func(_ context.Context, next *config.Config) (func() []string, error) {
		put, err := b.Reconfigure(next.Credentials, next.TenantCredentials, next.ProxyURL())
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		return quiet(put), nil
	}}
}

func pluginsPart(h *host.Host, logger *slog.Logger) part {
	return part{liveKeys.plugins, func(ctx context.Context, next *config.Config) (func() []string, error) {
		options, err := hostOptions(next)
		if err != nil {
			return nil, err
		}
		options.Governance.AuditOptional, options.Governance.AuditFields = next.Audit.Optional, next.Audit.Fields
		put, err := h.Reconfigure(options)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		return func() []string {
			before := h.Plugins()
			warnings := []string{}
			if err := put(ctx); err != nil {
				warnings = append(warnings, err.Error())
			}
			warnUnknown(next, h.Plugins(), logger)
			return append(warnings, troubled(before, h.Plugins())...)
		}, nil
	}}
}

// troubled says which plugins do not work that did, or do not for another reason.
func troubled(before, after []host.Status) []string {
	var list []string
	for _, now := range after {
		was := slices.ContainsFunc(before, func(s host.Status) bool {
			return s.Path == now.Path && s.State == now.State && s.Reason == now.Reason
		})
		if !was && now.State != host.Active {
			list = append(list, fmt.Sprintf("plugin %s is %s: %s", pluginTitle(now), now.State, now.Reason))
		}
	}
	return list
}

func upstreamsPart(f *upstreamFollower) part {
	return part{liveKeys.upstreams, func(_ context.Context, next *config.Config) (func() []string, error) {
		specs, err := upstreamSpecs(next)
		if err != nil {
			return nil, err
		}
		return func() []string {
			f.upstreams.SetDefaults(next.Limits, next.ProxyURL())
			err := f.upstreams.Apply(specs)
			f.follow(next)
			if err != nil {
				return []string{err.Error()}
			}
			return nil
		}, nil
	}}
}

func approvalsPart(g *government) part {
	return part{liveKeys.approvals, func(_ context.Context, next *config.Config) (func() []string, error) {
		return quiet(func() { g.approvals.Set(next.ApprovalTimeout, next.ApprovalOperators) }), nil
	}}
}

func frontendPart(frontend *mcpserver.Server) part {
	return part{liveKeys.frontend, func(_ context.Context, next *config.Config) (func() []string, error) {
		auth, _, err := checkHTTP(next)
		if err != nil {
			return nil, err
		}
		put, err := frontend.Reconfigure(frontendOptions(next, auth))
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		return quiet(put), nil
	}}
}

// tlsPart is for a server that has a certificate.
func tlsPart(cert *certificate) part {
	return part{liveKeys.tls, func(_ context.Context, next *config.Config) (func() []string, error) {
		other, err := newCertificate(next.HTTP.TLSCert, next.HTTP.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.tls: %w", err)
		}
		return quiet(func() { cert.take(other) }), nil
	}}
}

// agentPart is that of "hako agent run".
func agentPart(runners *agentRunners) part {
	return part{liveKeys.agent, func(ctx context.Context, next *config.Config) (func() []string, error) {
		if err := checkAgent(next); err != nil {
			return nil, err
		}
		if runners.same(next) {
			return quiet(func() {}), nil
		}
		runner, err := runners.make(ctx, next)
		if err != nil {
			return nil, err
		}
		return quiet(func() { runners.change(runner, next) }), nil
	}}
}

// slackPart comes last: what its prepare makes would have to be given back if another failed.
func slackPart(frontends *slackFrontends) part {
	return part{liveKeys.slack, func(ctx context.Context, next *config.Config) (func() []string, error) {
		frontend, err := frontends.make(ctx, next)
		if err != nil {
			return nil, err
		}
		return quiet(func() { frontends.change(frontend) }), nil
	}}
}

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// deed is what an operator does, for the audit log.
type deed struct {
	action, tenant string
	target         audit.Target
	detail         map[string]string
}

// event is the record of the deed, done by the user of this process.
func (d *deed) event(outcome string, err error) *audit.Event {
	e := &audit.Event{
		Type: audit.TypeOperator, Action: d.action, Outcome: outcome, Target: d.target, Detail: d.detail,
		Subject: audit.Subject{Frontend: "cli", Tenant: d.tenant, User: userName()},
	}
	if err != nil {
		e.Error = err.Error()
	}
	return e
}

// ownLog is the audit log as a command opens it, with the store that it lies in, if it does.
type ownLog struct {
	*audit.Log
	store *store.Store // nil: it lies in a directory
}

// Close closes both.
func (l *ownLog) Close() error {
	err := l.Log.Close()
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	return err
}

// openAudit opens the audit log of the configuration; nil with neither log nor error means that it has none. The caller
// closes it.
func (a *app) openAudit(ctx context.Context, c *config.Config) (_ *ownLog, err error) {
	if c.Audit.Disabled {
		return nil, nil
	}
	logger, l := a.logger(c, logLevels["warn"]), new(ownLog)
	if store.IsURL(c.Store) {
		if l.store, err = c.OpenStore(ctx, logger); err != nil {
			return nil, err
		}
	}
	if l.Log, err = openLog(ctx, c, l.store, logger); err != nil && l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// audited does what the deed says, with a record before and one of how it ended. What cannot be recorded is not done,
// unless the configuration prefers that.
func (a *app) audited(ctx context.Context, c *config.Config, d *deed, do func() error) (err error) {
	log, err := a.openAudit(ctx, c)
	if err == nil && log != nil {
		defer func() { err = errors.Join(err, log.Close()) }()
		err = log.Append(ctx, d.event("begun", nil))
	}
	if err != nil && !c.Audit.Optional {
		return fmt.Errorf("nothing was done, because it could not be recorded: %w", err)
	}
	if err != nil {
		printf(a.stderr, "hako: this is not recorded: %v\n", err)
		log = nil
	}
	failure := do()
	if log == nil {
		return failure
	}
	outcome := "ok"
	if failure != nil {
		outcome = "failed"
	}
	if err := log.Append(context.WithoutCancel(ctx), d.event(outcome, failure)); err != nil {
		printf(a.stderr, "hako: how it ended is not recorded: %v\n", err)
	}
	return failure
}

// declined records that somebody was asked for the deed and said no.
func (a *app) declined(ctx context.Context, c *config.Config, d *deed) error {
	log, err := a.openAudit(ctx, c)
	if err != nil || log == nil {
		return err
	}
	return errors.Join(log.Append(ctx, d.event("refused", nil)), log.Close())
}

// record writes what the host itself does to the log. Calls are refused as long as the log cannot be written, so the
// host goes on.
func (g *government) record(e *audit.Event) {
	if g.audit == nil {
		return
	}
	e.Type = audit.TypeOperator
	if err := g.audit.Append(context.Background(), e); err != nil {
		g.logger.Error("record in the audit log", "action", e.Action, "err", err)
	}
}

// loginFailed records that a token was refused at the MCP endpoint.
func (g *government) loginFailed(f mcpserver.FailedLogin) {
	g.record(&audit.Event{
		Action: "mcp.login", Outcome: "failed", Error: f.Err.Error(),
		Subject: audit.Subject{Frontend: pipeline.FrontendHTTP, Tenant: f.Tenant, User: f.User, Token: f.Token,
			Address: f.Address},
	})
}

// started records that the host begins to serve: under which configuration, and how the plugins stand. Their changes
// are recorded from then on.
func (g *government) started(plugins []host.Status) error {
	defer g.serving.Store(true)
	if g.audit == nil {
		return nil
	}
	b := thisBuild()
	d := &deed{action: "serve.start", detail: map[string]string{
		"version": b.Version, "go": runtime.Version(), "configuration": configDigest(g.config),
	}}
	if b.Commit != "" {
		d.detail["commit"] = b.Commit
	}
	for _, s := range plugins {
		d.detail["plugin."+pluginTitle(s)] = strings.TrimSpace(strings.Join([]string{string(s.State), s.Version,
			cmp.Or(s.Serving, s.Digest)}, " "))
	}
	err := g.audit.Append(context.Background(), d.event("ok", nil))
	if err != nil && g.config.Audit.Optional {
		g.logger.Error("record in the audit log", "action", d.action, "err", err)
		return nil
	}
	return err
}

func (g *government) stopped() { g.record((&deed{action: "serve.stop"}).event("ok", nil)) }

// configDigest stands for the values in force, wherever they come from, as "hako config show" lists them.
func configDigest(c *config.Config) string {
	sum := sha256.New()
	for _, e := range c.Entries() {
		fmt.Fprintf(sum, "%s\x00%s\n", e.Key, e.Value)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// pluginChanged records that a plugin comes into service, goes out of it or waits. Those at the start are in the record
// of that.
func (g *government) pluginChanged(s host.Status) {
	if !g.serving.Load() {
		return
	}
	g.record(&audit.Event{
		Action: "plugin." + string(s.State), Outcome: "ok",
		Target: audit.Target{Plugin: s.Name, Digest: cmp.Or(s.Serving, s.Digest)},
		Detail: map[string]string{"version": s.Version},
	})
}

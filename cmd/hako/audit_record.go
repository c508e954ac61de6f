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

// audited performs an operation of this process's user, and records it before and after in the audit log of the
// configuration. An operation that cannot be recorded is not performed, unless the configuration says otherwise.
func (a *app) audited(ctx context.Context, c *config.Config, o *audit.Operation, do func() error) (err error) {
	sign(o)
	log, err := a.openAudit(ctx, c)
	if err != nil && !c.Audit.Optional {
		return fmt.Errorf("%w: %w", audit.ErrUnrecorded, err)
	}
	if err != nil {
		printf(a.stderr, "hako: this is not recorded: %v\n", err)
	}
	recorder := &audit.Recorder{Optional: c.Audit.Optional, Unrecorded: func(_ *audit.Operation, outcome string, err error) {
		switch {
		case outcome != "begun":
			printf(a.stderr, "hako: how it ended is not recorded: %v\n", err)
		case c.Audit.Optional:
			printf(a.stderr, "hako: this is not recorded: %v\n", err)
		}
	}}
	if log != nil {
		recorder.Log = log
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	return recorder.Do(ctx, o, do)
}

// declined records that the user was asked about an operation and said no.
func (a *app) declined(ctx context.Context, c *config.Config, o *audit.Operation) error {
	log, err := a.openAudit(ctx, c)
	if err != nil || log == nil {
		return err
	}
	sign(o)
	return errors.Join(log.Append(ctx, o.Event("refused", nil)), log.Close())
}

// sign makes this process's user the subject of an operation. It keeps the tenant.
func sign(o *audit.Operation) { o.Subject.Frontend, o.Subject.User = "cli", audit.ProcessUser() }

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
	o := &audit.Operation{Action: "serve.start", Detail: map[string]string{
		"version": b.Version, "go": runtime.Version(), "configuration": configDigest(g.config),
	}}
	sign(o)
	if b.Commit != "" {
		o.Detail["commit"] = b.Commit
	}
	for _, s := range plugins {
		o.Detail["plugin."+pluginTitle(s)] = strings.TrimSpace(strings.Join([]string{string(s.State), s.Version,
			cmp.Or(s.Serving, s.Digest)}, " "))
	}
	err := g.audit.Append(context.Background(), o.Event("ok", nil))
	if err != nil && g.config.Audit.Optional {
		g.logger.Error("record in the audit log", "action", o.Action, "err", err)
		return nil
	}
	return err
}

func (g *government) stopped() {
	o := &audit.Operation{Action: "serve.stop"}
	sign(o)
	g.record(o.Event("ok", nil))
}

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

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/locale"
)

// Governance decides about calls, limits them and records them: the policy, approvals, quotas and the audit log, with
// the store that holds their state. OpenGovernance makes one.
type Governance struct {
	Store     *store.Store
	Approvals *approval.Queue

	policy *policy.Live
	quotas *quota.Limiter
	ledger *quota.Store
	audit  *audit.Log // nil: calls are not recorded
	// results keeps large results of tools. Nil: none are kept.
	results *results.Keeper
	// databases holds the databases of plugins. Nil: they are files.
	databases *sqlbroker.PageStore
	config    *config.Config
	logger    *slog.Logger

	// stop ends the background jobs, done counts them.
	stop context.CancelFunc
	done sync.WaitGroup
	// stamp identifies the state of the policy file at the last check. Only follow uses it.
	stamp fileStamp
}

// OpenGovernance opens the policy, the store and its contents. The caller closes it, after all calls have ended. A
// policy file that changes meanwhile is applied.
func OpenGovernance(ctx context.Context, c *config.Config, logger *slog.Logger) (_ *Governance, err error) {
	jobs, stop := context.WithCancel(context.Background())
	g := &Governance{config: c, logger: logger, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if g.policy, err = policy.OpenLive(c.Policy); err != nil {
		return nil, err
	}
	if !store.IsURL(c.Store) {
		if err := backup.CheckRestored(c.Store); err != nil {
			return nil, err
		}
	}
	if g.Store, err = c.OpenStore(ctx, logger); err != nil {
		return nil, err
	}
	if g.Store.Shared() { // otherwise the databases of plugins are files
		if g.databases, err = sqlbroker.NewPageStore(ctx, g.Store); err != nil {
			return nil, err
		}
	}
	if g.ledger, err = quota.NewStore(ctx, g.Store); err != nil {
		return nil, err
	}
	limits := &quota.Options{Ledger: g.ledger, Now: g.Store.Time, Logger: logger}
	if g.Store.Shared() {
		limits.Pool = g.ledger
	}
	g.quotas = quota.New(g.policy.Policy().Quotas, limits)
	g.Approvals, err = approval.New(ctx, g.Store, &approval.Options{
		Timeout: c.ApprovalTimeout, Operators: c.ApprovalOperators, May: g.mayAnswer,
	})
	if err != nil {
		return nil, err
	}
	if !c.ResultsDisabled {
		if g.results, err = results.Open(ctx, &c.Results, g.Store, logger); err != nil {
			return nil, err
		}
	}
	if !c.Audit.Disabled {
		g.audit, err = openAuditLog(ctx, c, g.Store, logger)
		if err != nil && !c.Audit.Optional {
			return nil, fmt.Errorf("%w: set audit.disabled to run without it", err)
		}
		if err != nil {
			logger.Error("calls are not recorded: the audit log cannot be opened", "err", err)
			err = nil
		}
	}
	g.done.Go(func() { g.follow(jobs) })
	g.done.Go(g.removeLeftovers)
	g.done.Go(secretscan.Prepare)
	return g, nil
}

// WithGovernance opens a Governance, calls do with it, and closes it.
func WithGovernance(ctx context.Context, c *config.Config, logger *slog.Logger, do func(*Governance) error) error {
	g, err := OpenGovernance(ctx, c, logger)
	if err != nil {
		return err
	}
	return errors.Join(do(g), g.Close())
}

// mayAnswer lets operators answer every question. Among the users of the caller's tenant, the policy decides.
func (g *Governance) mayAnswer(q *approval.Question, p approval.Person) bool {
	if p.Operator {
		return true
	}
	decision := policy.Decision{Approvers: q.Approvers}
	return p.Tenant == q.Caller.Tenant && g.policy.Policy().MayApprove(decision, q.Caller.User, p.User, p.Groups)
}

// removeLeftovers removes temporary files that killed processes have left beside the state and its keys.
func (g *Governance) removeLeftovers() {
	dirs := []string{g.config.StateDir(), auditDir(g.config)}
	if file := g.config.SecretsKey.File; file != "" {
		dirs = append(dirs, filepath.Dir(file))
	}
	if err := wholefile.RemoveLeftovers(dirs...); err != nil {
		g.logger.Warn("temporary files of an interrupted write cannot be removed", "err", err)
	}
}

// Apply puts the calls of a host under this governance.
func (g *Governance) Apply(o *host.Options) {
	o.Governance = pipeline.Governance{
		Policy: g.policy.Policy, Approvals: g.Approvals, Quotas: g.quotas,
		Scanner: func() *secretscan.Scanner { return g.policy.Policy().Secrets },
	}
	if g.audit != nil {
		o.Governance.Audit = g.audit
	}
	o.Results, o.Databases = g.results, g.databases
	if g.Store.Shared() {
		o.ConsentStore = g.Store
	}
	o.CommandRules = func() []judge.Rule { return g.policy.Policy().Commands }
}

// Close waits for the background jobs, and closes the audit log and the store. Calls must have ended. It may be called
// twice.
func (g *Governance) Close() error {
	g.stop()
	g.done.Wait()
	var err error
	if g.quotas != nil {
		g.quotas.Close()
	}
	if g.audit != nil {
		err = g.audit.Close()
	}
	if g.Store != nil {
		err = errors.Join(err, g.Store.Close())
	}
	return err
}

const (
	// policyPoll is the interval at which the policy file is checked for changes.
	policyPoll = 500 * time.Millisecond
	// quotaFlush is the interval at which used quotas are written to the store, and reserved ones returned to other
	// replicas.
	quotaFlush = 2 * time.Second
)

// follow applies changes of the policy file and writes used quotas to the store, until ctx ends.
func (g *Governance) follow(ctx context.Context) {
	check, flush := time.NewTicker(policyPoll), time.NewTicker(quotaFlush)
	defer check.Stop()
	defer flush.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-flush.C:
			g.quotas.Flush()
		case <-check.C:
			if g.settled() {
				reported = g.reloadPolicy(reported)
			}
		}
	}
}

// settled reports whether the policy file is unchanged since the last check. Half of a file that somebody is writing
// may be a valid policy without its last rules.
func (g *Governance) settled() bool {
	stamp := stampOf(g.config.Policy)
	same := stamp == g.stamp
	g.stamp = stamp
	return same
}

// reloadPolicy applies a changed policy file. It returns the error of the file, and reports it unless it is
// reported already.
func (g *Governance) reloadPolicy(reported string) string {
	changed, err := g.policy.Reload()
	event := &audit.Event{Action: "policy.reload", Outcome: "ok", Detail: map[string]string{"file": g.config.Policy}}
	switch {
	case err != nil && err.Error() != reported:
		g.logger.Error("the policy file is invalid: the previous policy stays in force",
			"file", g.config.Policy, "err", err)
		event.Outcome, event.Error = audit.OutcomeFailed, err.Error()
		g.record(event)
	case changed:
		g.quotas.SetRules(g.policy.Policy().Quotas)
		g.logger.Info("a new policy is in force", "file", g.config.Policy)
		g.record(event)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// record writes an operation of the host to the audit log. A failure is only logged: calls are refused as long as the
// log cannot be written, so the host continues.
func (g *Governance) record(e *audit.Event) {
	if g.audit == nil {
		return
	}
	e.Type = audit.TypeOperator
	if err := g.audit.Append(context.Background(), e); err != nil {
		g.logger.Error("record in the audit log", "action", e.Action, "err", err)
	}
}

// governance is the part with the Governance of a server, which it also records the server's own operations with.
type governance struct {
	server *Server
	*Governance
	// tokens are those in the store.
	tokens  *bearer.Issued
	unwatch func()
	// serving is set once the start has been recorded.
	serving atomic.Bool
}

func (g *governance) start(ctx context.Context) (err error) {
	if g.Governance, err = OpenGovernance(ctx, g.server.Config, g.server.Logger); err != nil {
		return err
	}
	if g.tokens, err = bearer.Open(ctx, g.Store); err != nil {
		return errors.Join(err, g.Close())
	}
	g.server.observability.showGovernance(g.Governance)
	g.unwatch = g.Approvals.Watch(nil, func(q *approval.Question) {
		g.logger.Info("a call is pending approval: hako approvals",
			"question", q.ID, "tool", q.Tool, "user", q.Caller.User, "rule", q.Rule)
	})
	return nil
}

// run keeps up with the tokens in the store.
func (g *governance) run(ctx context.Context) error {
	g.tokens.Run(ctx, g.logger)
	return nil
}

func (g *governance) stop() error {
	g.unwatch()
	return g.Close()
}

func (*governance) keys() []string { return []string{"approvals"} }

func (g *governance) prepare(_ context.Context, next *config.Config) (*change, error) {
	return silently(func() { g.Approvals.SetDefaults(next.ApprovalTimeout, next.ApprovalOperators) }), nil
}

func (g *governance) status() []string {
	if g.policy.Err() == nil {
		return nil
	}
	return []string{"the policy file is invalid: the previous policy stays in force (hako policy check)"}
}

func (g *governance) problems(language string) []console.Problem {
	err := g.policy.Err()
	if err == nil {
		return nil
	}
	return []console.Problem{{Kind: "policy", Text: locale.In(err, language), Remedy: manifest.Text{
		"en": "Correct the policy file (hako policy check); until then the previous policy stays in force.",
		"ja": "ポリシーファイルを修正してください (hako policy check)。それまでは以前のポリシーが有効です。",
	}.In(language)}}
}

// recordStart records that the host begins to serve: its version, its configuration and the state of each plugin. From
// then on pluginChanged records plugins that change.
func (g *governance) recordStart(plugins []host.Status) error {
	defer g.serving.Store(true)
	if g.audit == nil {
		return nil
	}
	build := g.server.Build
	o := g.operation("serve.start")
	o.Detail = map[string]string{
		"version": build.Version, "go": build.Go, "configuration": configDigest(g.config),
	}
	if build.Commit != "" {
		o.Detail["commit"] = build.Commit
	}
	for _, s := range plugins {
		fields := []string{string(s.State), s.Version, cmp.Or(s.Serving, s.Digest)}
		o.Detail["plugin."+s.Title()] = strings.TrimSpace(strings.Join(fields, " "))
	}
	err := g.audit.Append(context.Background(), o.Event("ok", nil))
	if err != nil && g.config.Audit.Optional {
		g.logger.Error("record in the audit log", "action", o.Action, "err", err)
		return nil
	}
	return err
}

// recordStop records that the host has stopped.
func (g *governance) recordStop() { g.record(g.operation("serve.stop").Event("ok", nil)) }

// operation is something that the user of this process does.
func (g *governance) operation(action string) *audit.Operation {
	return &audit.Operation{Action: action, Subject: audit.Subject{Frontend: "cli", User: audit.ProcessUser()}}
}

// pluginChanged records the new state of a plugin.
func (g *governance) pluginChanged(s host.Status) {
	if !g.serving.Load() {
		return // recordStart records it
	}
	g.record(&audit.Event{
		Action: "plugin." + string(s.State), Outcome: "ok",
		Target: audit.Target{Plugin: s.Name, Digest: cmp.Or(s.Serving, s.Digest)},
		Detail: map[string]string{"version": s.Version},
	})
}

// recordLogin records a login of an MCP client at the authorization server, a refused one, or its end.
func (g *governance) recordLogin(e authserver.Event) {
	event := &audit.Event{
		Action: "mcp.login", Outcome: "ok",
		Subject: audit.Subject{Frontend: pipeline.FrontendHTTP, Tenant: e.Tenant, User: e.User, Address: e.Address,
			ClientName: e.Client},
	}
	if e.Action == authserver.Revoked {
		event.Action = "mcp.logout"
	}
	if e.Action == authserver.Refused {
		event.Outcome = audit.OutcomeFailed
	}
	if e.Err != nil {
		event.Error = e.Err.Error()
		g.logger.Warn("a login of an MCP client was refused or ended", "address", e.Address, "user",
			e.User, "err", e.Err)
	}
	g.record(event)
}

// loginFailed logs and records that the MCP endpoint refused a token.
func (g *governance) loginFailed(f mcpserver.FailedLogin) {
	g.logger.Warn("the MCP endpoint refused a token", "address", f.Address, "user", f.User, "token",
		f.Token, "err", f.Err)
	g.record(&audit.Event{
		Action: "mcp.login", Outcome: audit.OutcomeFailed, Error: f.Err.Error(),
		Subject: audit.Subject{
			Frontend: pipeline.FrontendHTTP, Tenant: f.Tenant, User: f.User, Token: f.Token, Address: f.Address,
		},
	})
}

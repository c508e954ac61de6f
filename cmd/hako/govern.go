package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/backup"
	"github.com/hako-run/hako/host/broker/exec/judge"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/host/quota"
	"github.com/hako-run/hako/host/secretscan"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/wholefile"
)

// government is what decides about calls, limits and records them, as the configuration has it.
type government struct {
	policy    *policy.Live
	approvals *approval.Queue
	quotas    *quota.Limiter
	book      *quota.Store
	audit     *audit.Log // nil: not recorded
	store     *store.Store
	// databases are those of plugins, in the store; nil: they are files.
	databases *sqlbroker.PageStore
	logger    *slog.Logger

	// serving is set when the start has been recorded.
	serving atomic.Bool

	config *config.Config
	stop   chan struct{}
	done   sync.WaitGroup
	// stamp is what the policy file was like at the last look. It is tend's.
	stamp string
}

// govern opens the policy, the approvals for approvals, the quotas and the audit log; the caller closes them.
func govern(ctx context.Context, c *config.Config, logger *slog.Logger) (_ *government, err error) {
	g := &government{config: c, logger: logger, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
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
	if g.store, err = c.OpenStore(ctx, logger); err != nil {
		return nil, err
	}
	if g.databases, err = pluginDatabases(ctx, g.store); err != nil {
		return nil, err
	}
	if g.book, err = quota.NewStore(ctx, g.store); err != nil {
		return nil, err
	}
	limits := &quota.Options{Ledger: g.book, Now: g.store.Time, Logger: logger}
	if g.store.Shared() {
		limits.Pool = g.book
	}
	g.quotas = quota.New(g.policy.Policy().Quotas, limits)
	if g.approvals, err = openApprovals(ctx, c, g.store, g.policy.Policy); err != nil {
		return nil, err
	}
	if !c.Audit.Disabled {
		g.audit, err = openLog(ctx, c, g.store, logger)
		if err != nil && !c.Audit.Optional {
			return nil, fmt.Errorf("%w: set audit.disabled to run without it", err)
		}
		if err != nil {
			logger.Error("calls are not recorded, because the audit log cannot be opened", "err", err)
			err = nil
		}
	}
	g.done.Go(g.tend)
	g.done.Go(g.removeLeftovers)
	g.done.Go(secretscan.Prepare)
	return g, nil
}

// removeLeftovers removes temporary files that killed processes have left beside the state and its keys.
func (g *government) removeLeftovers() {
	dirs := []string{g.config.StateDir(), auditDir(g.config)}
	if file := g.config.SecretsKey.File; file != "" {
		dirs = append(dirs, filepath.Dir(file))
	}
	if err := wholefile.RemoveLeftovers(dirs...); err != nil {
		g.logger.Warn("temporary files of an interrupted write cannot be removed", "err", err)
	}
}

// openApprovals opens the approvals for approvals. Who may answer is up to the policy, among the users of the caller's
// tenant; operators always may.
func openApprovals(ctx context.Context, c *config.Config, s *store.Store,
	inForce func() *policy.Policy) (*approval.Queue, error) {
	return approval.New(ctx, s, &approval.Options{Timeout: c.ApprovalTimeout, Operators: c.ApprovalOperators,
		May: func(q *approval.Question, p approval.Person) bool {
			return p.Operator || p.Tenant == q.Caller.Tenant &&
				inForce().MayApprove(policy.Decision{Approvers: q.Approvers}, q.Caller.User, p.User, p.Groups)
		}})
}

// apply makes a host do as the government says.
func (g *government) apply(o *host.Options) {
	o.Governance = pipeline.Governance{
		Policy: g.policy.Policy, Approvals: g.approvals, Quotas: g.quotas,
		Scanner:       func() *secretscan.Scanner { return g.policy.Policy().Secrets },
		AuditOptional: g.config.Audit.Optional, AuditFields: g.config.Audit.Fields,
	}
	if g.audit != nil {
		o.Governance.Audit = g.audit
	}
	o.Databases = g.databases
	if g.store.Shared() {
		o.ConsentStore = g.store
	}
	o.CommandRules = func() []judge.Rule { return g.policy.Policy().Commands }
}

// state says what an operator should look at, for those who look after the process. It names no rule and no user.
func (g *government) state() []string {
	if g.policy.Err() != nil {
		return []string{"the policy file is not usable: the policy read before stays in force (hako policy check)"}
	}
	return nil
}

// waits tells operators of a question.
func (g *government) waits(q *approval.Question) {
	g.logger.Info("a call waits for somebody's yes: hako approvals", "question", q.ID, "tool", q.Tool, "user",
		q.Caller.User, "rule", q.Rule)
}

const (
	// policyPoll is how often the policy file is looked at.
	policyPoll = 500 * time.Millisecond
	// quotaFlush is how often used quotas are written to the store, and shares of them are given back to other
	// replicas.
	quotaFlush = 2 * time.Second
)

// tend takes up changes of the policy, and keeps what was used of quotas.
func (g *government) tend() {
	look, flush := time.NewTicker(policyPoll), time.NewTicker(quotaFlush)
	defer look.Stop()
	defer flush.Stop()
	broken := ""
	for {
		select {
		case <-g.stop:
			return
		case <-flush.C:
			g.quotas.Flush()
		case <-look.C:
			if g.settled() {
				broken = g.reload(broken)
			}
		}
	}
}

// settled reports whether the policy file is as it was at the last look: half a file that somebody is writing may be a
// valid policy without its last rules.
func (g *government) settled() bool {
	stamp := ""
	if info, err := os.Stat(g.config.Policy); err == nil {
		stamp = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	}
	same := stamp == g.stamp
	g.stamp = stamp
	return same
}

// reload takes up a changed policy. It reports what is wrong with the file once.
func (g *government) reload(broken string) string {
	changed, err := g.policy.Reload()
	switch {
	case err != nil && err.Error() != broken:
		g.logger.Error("the policy file is not usable: the policy read before stays in force", "file", g.config.Policy,
			"err", err)
		g.note("failed", err)
	case changed:
		g.quotas.SetRules(g.policy.Policy().Quotas)
		g.logger.Info("another policy is in force", "file", g.config.Policy)
		g.note("ok", nil)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// note records what became of a changed policy file.
func (g *government) note(outcome string, failure error) {
	event := &audit.Event{Action: "policy.reload", Outcome: outcome, Detail: map[string]string{"file": g.config.Policy}}
	if failure != nil {
		event.Error = failure.Error()
	}
	g.record(event)
}

// close gives everything back. Calls must have ended.
func (g *government) close() error {
	close(g.stop)
	g.done.Wait()
	var err error
	if g.quotas != nil {
		g.quotas.Close()
	}
	if g.audit != nil {
		err = g.audit.Close()
	}
	if g.store != nil {
		err = errors.Join(err, g.store.Close())
	}
	return err
}

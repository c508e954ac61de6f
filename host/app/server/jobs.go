package server

import (
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/app/background"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

const (
	// credentialCheck is the interval at which credentials are checked for renewal: several times before each expires.
	credentialCheck = 4 * time.Minute
	// sessionSweep is the interval at which idle sessions of MCP clients and expired results of tools are removed.
	sessionSweep = time.Minute
	// retentionSweep is the interval at which records that are too old are deleted.
	retentionSweep = time.Hour
)

// backgroundJobs is the part that makes this process one of the replicas over its store, and runs the jobs that one
// replica does for all. It stops before the host closes the credentials that one of the jobs renews.
type backgroundJobs struct {
	server      *Server
	credentials *credentials
	// sessions holds the sessions of MCP clients. Nil: no other process sees them.
	sessions *sessionstore.SQL
	runner   *background.Runner
}

func (b *backgroundJobs) start(ctx context.Context) error {
	g, current := b.server.governance.Governance, b.server.reloader.config
	jobs := append(retentionJobs(g, current),
		background.Job{Name: "credentials", Every: credentialCheck, Run: b.credentials.RenewDue})
	var err error
	if g.Store.Shared() {
		if err := g.Store.Join(ctx, b.server.Build.Version); err != nil {
			return err
		}
		if b.sessions, err = sessionstore.New(ctx, g.Store); err != nil {
			return err
		}
		jobs = append(jobs, sessionJob(b.sessions, current))
		if g.results != nil {
			jobs = append(jobs, background.Job{Name: "old-results", Every: sessionSweep, Run: g.results.Forget})
		}
	}
	if b.runner, err = background.Start(ctx, g.Store, b.server.Logger, jobs...); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (b *backgroundJobs) stop() error {
	b.runner.Close()
	return nil
}

// retentionJobs delete records that are too old under the current configuration.
func retentionJobs(g *Governance, current func() *config.Config) (jobs []background.Job) {
	forget := map[string]func(context.Context) error{
		"old-approvals": g.Approvals.Forget, "old-quotas": g.ledger.Forget, "old-replicas": g.Store.ForgetReplicas,
		"old-conversations": func(ctx context.Context) error {
			return chat.Forget(ctx, g.Store, current().Chat.Retain)
		},
		"old-slack-events": func(ctx context.Context) error { return slackbot.Forget(ctx, g.Store) },
	}
	if g.audit != nil {
		forget["old-audit-records"] = g.audit.Expire
	}
	for name, run := range forget {
		jobs = append(jobs, background.Job{Name: name, Every: retentionSweep, Run: run})
	}
	return jobs
}

// sessionJob removes sessions of MCP clients that are idle for longer than the current configuration allows.
func sessionJob(sessions *sessionstore.SQL, current func() *config.Config) background.Job {
	return background.Job{Name: "mcp-sessions", Every: sessionSweep, Run: func(ctx context.Context) error {
		return sessions.Expire(ctx, current().MCP.Limits.SessionIdle)
	}}
}

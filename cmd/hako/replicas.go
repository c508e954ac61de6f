package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/background"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/slackbot"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// pluginDatabases is where the databases of plugins lie if not in files: in a store that replicas share.
func pluginDatabases(ctx context.Context, s *store.Store) (*sqlbroker.PageStore, error) {
	if !s.Shared() {
		return nil, nil
	}
	return sqlbroker.NewPageStore(ctx, s)
}

// renewal is how often it is looked whether credentials are due: several times between that moment and their expiry.
const renewal = 4 * time.Minute

// renewing is a job that renews credentials.
func renewing(credentials *credential.Broker) background.Job {
	return background.Job{Name: "credentials", Every: renewal, Run: credentials.RenewDue}
}

// renewedByJob are credentials that the host need not watch.
type renewedByJob struct{ *credential.Broker }

// Watch waits for ctx.
func (renewedByJob) Watch(ctx context.Context) { <-ctx.Done() }

// replica is what this process has as one of several over a store.
type replica struct {
	// sessions are those of MCP clients; nil where no other process sees them.
	sessions *sessionstore.Store
	jobs     *background.Runner
}

// sessionSweep is how often sessions are looked for that have been idle for too long.
const sessionSweep = time.Minute

// forgetting is how often old things are looked for.
const forgetting = time.Hour

// retention are the jobs that delete what is too old. inForce returns the configuration.
func (g *government) retention(inForce func() *config.Config) []background.Job {
	forget := map[string]func(context.Context) error{
		"old-approvals": g.approvals.Forget, "old-quotas": g.book.Forget, "old-replicas": g.store.ForgetReplicas,
		"old-conversations": func(ctx context.Context) error {
			return chat.Forget(ctx, g.store,
				inForce().Chat.Retain)
		},
		"old-slack-events": func(ctx context.Context) error { return slackbot.Forget(ctx, g.store) },
	}
	if g.audit != nil {
		forget["old-audit-records"] = g.audit.Expire
	}
	var jobs []background.Job
	for name, run := range forget {
		jobs = append(jobs, background.Job{Name: name, Every: forgetting, Run: run})
	}
	return jobs
}

// expiring is a job that removes sessions of MCP clients that have been idle for too long. inForce returns the
// configuration.
func expiring(sessions *sessionstore.Store, inForce func() *config.Config) background.Job {
	return background.Job{Name: "mcp-sessions", Every: sessionSweep, Run: func(ctx context.Context) error {
		return sessions.Expire(ctx, inForce().MCP.Limits.SessionIdle)
	}}
}

// join makes this process one of the replicas over its store, with the jobs that one of them does. The caller calls
// leave. inForce returns the configuration.
func (g *government) join(ctx context.Context, inForce func() *config.Config, logger *slog.Logger,
	jobs ...background.Job) (*replica, error) {
	r := new(replica)
	if g.store.Shared() {
		if err := g.store.Join(ctx, thisBuild().Version); err != nil {
			return nil, err
		}
		var err error
		if r.sessions, err = sessionstore.New(ctx, g.store); err != nil {
			return nil, err
		}
		jobs = append(jobs, expiring(r.sessions, inForce))
	}
	var err error
	if r.jobs, err = background.Start(ctx, g.store, logger, jobs...); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return r, nil
}

// frontend makes the sessions of MCP clients those of all replicas.
func (r *replica) frontend(o *mcpserver.Options) { o.Sessions = r.sessions }

// leave ends the jobs that run here.
func (r *replica) leave() { r.jobs.Close() }

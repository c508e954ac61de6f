package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/agent"
	"github.com/hako-run/hako/internal/config"
)

// checkAgent returns what is wrong with what the configuration says of agents.
func checkAgent(c *config.Config) error {
	if err := checkTenant(c, c.Agent.Tenant); err != nil {
		return fmt.Errorf("configuration: agent.tenant: %w", err)
	}
	if err := c.Agent.Check(); err != nil {
		return fmt.Errorf("configuration: agent: %w", err)
	}
	return nil
}

// agentRunners are the runner of the configuration in force, and those before it that finish what they have begun.
type agentRunners struct {
	// make makes the runner of a configuration.
	make   func(context.Context, *config.Config) (*agent.Runner, error)
	logger *slog.Logger

	// mu guards what follows.
	mu     sync.Mutex
	now    *agent.Runner
	config *config.Config // that now is of
	// start runs a runner; nil while run does not.
	start func(*agent.Runner)
}

// change has next, the runner of a configuration, take the place of the one there.
func (r *agentRunners) change(next *agent.Runner, c *config.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.now
	r.now, r.config = next, c
	if r.start != nil {
		r.start(next)
	}
	if before != nil {
		before.Retire()
	}
}

// same reports whether the runner there does as the configuration says.
func (r *agentRunners) same(c *config.Config) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return reflect.DeepEqual(r.config.Agent, c.Agent) && r.config.Locale == c.Locale &&
		reflect.DeepEqual(r.config.ProxyURL(), c.ProxyURL())
}

// errSessionsEnded says that a runner has nothing to follow any more.
var errSessionsEnded = errors.New("all sessions have ended")

// run follows the sessions until ctx ends, or until there is nothing to follow any more.
func (r *agentRunners) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	r.mu.Lock()
	r.start = func(runner *agent.Runner) { group.Go(func() error { return r.follow(ctx, runner) }) }
	r.start(r.now)
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.start = nil
	r.mu.Unlock()
	if err := group.Wait(); !errors.Is(err, errSessionsEnded) {
		return err
	}
	return nil
}

// follow runs a runner. How one ends in whose place there is another does not matter.
func (r *agentRunners) follow(ctx context.Context, runner *agent.Runner) error {
	err := runner.Run(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.now == runner && err == nil:
		return errSessionsEnded
	case r.now == runner:
		return err
	case err != nil:
		r.logger.Warn("calls of managed agents had begun under the configuration before, and could not be finished",
			"err", err)
	}
	return nil
}

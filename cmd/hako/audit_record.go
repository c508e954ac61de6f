package main

import (
	"context"
	"log/slog"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
)

// audited performs an operation of this process's user, and records it before and after in the audit log of the
// configuration; see server.PerformOperation.
func (a *app) audited(ctx context.Context, c *config.Config, o *audit.Operation, do func() error) error {
	warn := func(what string, err error) { printf(a.stderr, "hako: %s: %v\n", what, err) }
	return server.PerformOperation(ctx, c, a.logger(c, slog.LevelWarn), o, do, warn)
}

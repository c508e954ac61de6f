package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
)

// audited performs an operation of this process's user, and records it before and after in the audit log of the
// configuration. An operation that cannot be recorded is not performed, unless the configuration says otherwise.
func (a *app) audited(ctx context.Context, c *config.Config, o *audit.Operation, do func() error) (err error) {
	sign(o)
	log, err := server.OpenOwnAudit(ctx, c, a.logger(c, slog.LevelWarn))
	if err != nil && !c.Audit.Optional {
		return fmt.Errorf("%w: %w", audit.ErrUnrecorded, err)
	}
	if err != nil {
		printf(a.stderr, "hako: this is not recorded: %v\n", err)
	}
	recorder := &audit.Recorder{
		Optional: c.Audit.Optional,
		Unrecorded: func(_ *audit.Operation, outcome string, err error) {
			switch {
			case outcome != "begun":
				printf(a.stderr, "hako: how it ended is not recorded: %v\n", err)
			case c.Audit.Optional:
				printf(a.stderr, "hako: this is not recorded: %v\n", err)
			}
		},
	}
	if log != nil {
		recorder.Log = log
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	return recorder.Do(ctx, o, do)
}

// declined records that the user was asked about an operation and said no.
func (a *app) declined(ctx context.Context, c *config.Config, o *audit.Operation) error {
	log, err := server.OpenOwnAudit(ctx, c, a.logger(c, slog.LevelWarn))
	if err != nil || log == nil {
		return err
	}
	sign(o)
	return errors.Join(log.Append(ctx, o.Event("refused", nil)), log.Close())
}

// sign makes this process's user the subject of an operation. It keeps the tenant.
func sign(o *audit.Operation) { o.Subject.Frontend, o.Subject.User = "cli", audit.ProcessUser() }

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
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
	logger, l := a.logger(c, server.LogLevels["warn"]), new(ownLog)
	if store.IsURL(c.Store) {
		if l.store, err = c.OpenStore(ctx, logger); err != nil {
			return nil, err
		}
	}
	if l.Log, err = server.OpenAuditLog(ctx, c, l.store, logger); err != nil && l.store != nil {
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
	log, err := a.openAudit(ctx, c)
	if err != nil || log == nil {
		return err
	}
	sign(o)
	return errors.Join(log.Append(ctx, o.Event("refused", nil)), log.Close())
}

// sign makes this process's user the subject of an operation. It keeps the tenant.
func sign(o *audit.Operation) { o.Subject.Frontend, o.Subject.User = "cli", audit.ProcessUser() }

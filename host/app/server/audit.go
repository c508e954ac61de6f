package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

// openAuditLog opens the audit log of the configuration. If the store is a database, the log is in s, which then must
// not be nil. The caller closes the log.
func openAuditLog(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) (*audit.Log, error) {
	o := &audit.Options{Dir: auditDir(c), Sync: c.Audit.Sync, Retain: c.Audit.Retain, Logger: logger}
	if store.IsURL(c.Store) {
		var err error
		if o.Key, err = auditKey(ctx, c); err != nil {
			return nil, err
		}
		o.Store = s
	}
	return audit.Open(o)
}

// AuditPlace returns where the audit log of the configuration is read from. If the store is a database, the log is in
// s, and without the key, which readers may lack, the end of the log cannot be verified.
func AuditPlace(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) audit.Reader {
	if !store.IsURL(c.Store) {
		return audit.Dir(auditDir(c))
	}
	key, err := auditKey(ctx, c)
	if err != nil {
		logger.Warn("the key of the audit log cannot be read", "err", err)
	}
	return audit.NewTable(s, key)
}

// auditDir is the directory of the audit log if the store is a directory.
func auditDir(c *config.Config) string { return filepath.Join(c.StateDir(), "audit") }

// auditKey is the key of a log that replicas share; empty if none is set.
func auditKey(ctx context.Context, c *config.Config) (string, error) {
	if c.Audit.Key.IsZero() {
		return "", nil
	}
	key, err := c.Audit.Key.Read(ctx)
	if err != nil {
		return "", fmt.Errorf("audit.key: %w", err)
	}
	return key, nil
}

// ownAuditLog is an audit log with the store that holds it. openOwnAudit opens one.
type ownAuditLog struct {
	*audit.Log
	store *store.Store // nil: it lies in a directory
}

// Close closes the log and the store.
func (l *ownAuditLog) Close() error {
	err := l.Log.Close()
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	return err
}

// openOwnAudit opens the audit log of the configuration, and the store if it holds the log. Both results are nil if the
// configuration has no log. The caller closes it.
func openOwnAudit(ctx context.Context, c *config.Config, logger *slog.Logger) (_ *ownAuditLog, err error) {
	if c.Audit.Disabled {
		return nil, nil
	}
	l := new(ownAuditLog)
	if store.IsURL(c.Store) {
		if l.store, err = c.OpenStore(ctx, logger); err != nil {
			return nil, err
		}
	}
	if l.Log, err = openAuditLog(ctx, c, l.store, logger); err != nil && l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// PerformOperation performs an operation of this process's user with do, and records it before and after in the audit
// log of the configuration. An operation that cannot be recorded is not performed, unless the configuration says
// otherwise. warn is called for each record that cannot be written, with the reason.
func PerformOperation(ctx context.Context, c *config.Config, logger *slog.Logger, o *audit.Operation,
	do func() error, warn func(what string, err error)) (err error) {
	signOperation(o)
	log, err := openOwnAudit(ctx, c, logger)
	if err != nil && !c.Audit.Optional {
		return fmt.Errorf("%w: %w", audit.ErrUnrecorded, err)
	}
	const unrecorded = "this is not recorded"
	if err != nil {
		warn(unrecorded, err)
	}
	recorder := &audit.Recorder{
		Optional: c.Audit.Optional,
		Unrecorded: func(_ *audit.Operation, outcome string, err error) {
			switch {
			case outcome != audit.OutcomeBegun:
				warn("how it ended is not recorded", err)
			case c.Audit.Optional:
				warn(unrecorded, err)
			}
		},
	}
	if log != nil {
		recorder.Log = log
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	return recorder.Do(ctx, o, do)
}

// RecordRefusal records that this process's user was asked about an operation and said no.
func RecordRefusal(ctx context.Context, c *config.Config, logger *slog.Logger, o *audit.Operation) error {
	log, err := openOwnAudit(ctx, c, logger)
	if err != nil || log == nil {
		return err
	}
	signOperation(o)
	return errors.Join(log.Append(ctx, o.Event(audit.OutcomeRefused, nil)), log.Close())
}

// signOperation makes this process's user the subject of an operation. It keeps the tenant.
func signOperation(o *audit.Operation) {
	o.Subject.Frontend, o.Subject.User = "cli", audit.ProcessUser()
}

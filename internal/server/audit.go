package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
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
func AuditPlace(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) audit.Place {
	if !store.IsURL(c.Store) {
		return audit.Dir(auditDir(c))
	}
	key, err := auditKey(ctx, c)
	if err != nil {
		logger.Warn("the key of the audit log cannot be read", "err", err)
	}
	return audit.In(s, key)
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

// OwnAuditLog is an audit log with the store that holds it. OpenOwnAudit opens one.
type OwnAuditLog struct {
	*audit.Log
	store *store.Store // nil: it lies in a directory
}

// Close closes the log and the store.
func (l *OwnAuditLog) Close() error {
	err := l.Log.Close()
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	return err
}

// OpenOwnAudit opens the audit log of the configuration, and the store if it holds the log. Both results are nil if the
// configuration has no log. The caller closes it.
func OpenOwnAudit(ctx context.Context, c *config.Config, logger *slog.Logger) (_ *OwnAuditLog, err error) {
	if c.Audit.Disabled {
		return nil, nil
	}
	l := new(OwnAuditLog)
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

package server

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// OpenAuditLog opens the audit log of the configuration. If the store is a database, the log is in s, which then must
// not be nil. The caller closes the log.
func OpenAuditLog(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) (*audit.Log, error) {
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

// AuditPlace returns where the audit log of the configuration is read from. If the store is a database, the log is in s,
// and without the key, which readers may lack, the end of the log cannot be verified.
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

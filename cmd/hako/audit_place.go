package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// auditDir is where the audit log lies if the store is a directory.
func auditDir(c *config.Config) string { return filepath.Join(c.StateDir(), "audit") }

// auditOptions are those of the audit log of the configuration, in the store s where replicas share that.
func auditOptions(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) (*audit.Options, error) {
	o := &audit.Options{Dir: auditDir(c), Sync: c.Audit.Sync, Retain: c.Audit.Retain, Logger: logger}
	if !store.IsURL(c.Store) {
		return o, nil
	}
	var err error
	o.Store = s
	o.Key, err = auditKey(ctx, c)
	return o, err
}

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

// openLog opens the audit log of the configuration, in the store s where replicas share that.
func openLog(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) (*audit.Log, error) {
	o, err := auditOptions(ctx, c, s, logger)
	if err != nil {
		return nil, err
	}
	return audit.Open(o)
}

// auditPlace is where the configuration's log is read from, in the store s where replicas share that. Without the key,
// which who only reads may not have, the end of the log cannot be checked.
func auditPlace(ctx context.Context, c *config.Config, s *store.Store, logger *slog.Logger) audit.Place {
	if !store.IsURL(c.Store) {
		return audit.Dir(auditDir(c))
	}
	key, err := auditKey(ctx, c)
	if err != nil {
		logger.Warn("the key of the audit log cannot be read", "err", err)
	}
	return audit.In(s, key)
}

// withAudit calls do with the log in dir as given on the command line, or that of the configuration. There must be one.
func (a *app) withAudit(cmd *cobra.Command, dir string, do func(audit.Place) error) (err error) {
	var place audit.Place = audit.Dir(a.path(dir))
	if dir == "" {
		c, err := a.config(cmd)
		if err != nil {
			return err
		}
		logger := a.logger(c, slog.LevelWarn)
		var s *store.Store
		if store.IsURL(c.Store) {
			if s, err = c.OpenStore(cmd.Context(), logger); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
		}
		place = auditPlace(cmd.Context(), c, s, logger)
	}
	found, err := place.Exists(cmd.Context())
	if err == nil && !found {
		err = fmt.Errorf("there is no audit log in %s: hako serve and hako call begin one, unless audit.disabled is set", place)
	}
	if err != nil {
		return err
	}
	return do(place)
}

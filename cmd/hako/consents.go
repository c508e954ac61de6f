package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// loadConsents reads the consents of the configuration: from the store s where replicas share that, else from the file.
func loadConsents(ctx context.Context, c *config.Config, s *store.Store) (*grant.File, error) {
	if s == nil || !s.Shared() {
		return grant.Load(c.Consents)
	}
	return grant.LoadStored(ctx, s, c.Consents)
}

// withShared calls do with the store of the configuration if replicas share that, and otherwise with nil: a directory
// is not made for commands that do not need it.
func (a *app) withShared(ctx context.Context, c *config.Config, do func(*store.Store) error) error {
	if !store.IsURL(c.Store) {
		return do(nil)
	}
	return a.withStore(ctx, c, do)
}

// withStore calls do with the store of the configuration, which is made if it is missing.
func (a *app) withStore(ctx context.Context, c *config.Config, do func(*store.Store) error) (err error) {
	s, err := c.OpenStore(ctx, a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

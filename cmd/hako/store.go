package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// openStore is config.Config.OpenStore or InspectStore.
type openStore func(context.Context, *slog.Logger) (*store.Store, error)

// withShared calls do with the store if replicas share it, and otherwise with nil: a directory is not made for commands
// that do not need it.
func (a *app) withShared(ctx context.Context, c *config.Config, open openStore, do func(*store.Store) error) error {
	if !store.IsURL(c.Store) {
		return do(nil)
	}
	s, err := open(ctx, a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// withStore calls do with the store of the configuration, which is made if it is missing.
func (a *app) withStore(ctx context.Context, c *config.Config, do func(*store.Store) error) error {
	s, err := c.OpenStore(ctx, a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

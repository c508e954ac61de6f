package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// withShared calls do with the store of the configuration if replicas share that, and otherwise with nil: a directory
// is not made for commands that do not need it.
func (a *app) withShared(ctx context.Context, c *config.Config, do func(*store.Store) error) error {
	if !store.IsURL(c.Store) {
		return do(nil)
	}
	return a.withStore(ctx, c, do)
}

// inspectShared is withShared for commands that change nothing.
func (a *app) inspectShared(ctx context.Context, c *config.Config, do func(*store.Store) error) (err error) {
	if !store.IsURL(c.Store) {
		return do(nil)
	}
	s, err := c.InspectStore(ctx, a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
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

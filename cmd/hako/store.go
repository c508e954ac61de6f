package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/store"
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

// withStore calls do with the configuration and its store, which is made if it is missing.
func (a *app) withStore(cmd *cobra.Command, do func(*config.Config, *store.Store) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	s, err := c.OpenStore(cmd.Context(), a.logger(c, slog.LevelWarn))
	if err != nil {
		return err
	}
	return errors.Join(do(c, s), s.Close())
}

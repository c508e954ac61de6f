package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

// withAudit calls do with the log in dir as given on the command line, or that of the configuration. There must be one.
func (a *app) withAudit(cmd *cobra.Command, dir string, do func(audit.Reader) error) error {
	if dir == "" {
		c, err := a.config(cmd)
		if err != nil {
			return err
		}
		return a.withShared(cmd.Context(), c, c.OpenStore, func(s *store.Store) error {
			return existing(cmd.Context(), server.AuditPlace(cmd.Context(), c, s, a.logger(c, slog.LevelWarn)), do)
		})
	}
	return existing(cmd.Context(), audit.Dir(a.path(dir)), do)
}

// existing calls do with a log if there is one.
func existing(ctx context.Context, place audit.Reader, do func(audit.Reader) error) error {
	found, err := place.Exists(ctx)
	if err == nil && !found {
		err = fmt.Errorf("there is no audit log in %s: hako serve and hako call create one, "+
			"unless audit.disabled is set", place)
	}
	if err != nil {
		return err
	}
	return do(place)
}

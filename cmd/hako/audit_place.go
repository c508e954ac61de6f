package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/server"
)

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
		place = server.AuditPlace(cmd.Context(), c, s, logger)
	}
	found, err := place.Exists(cmd.Context())
	if err == nil && !found {
		err = fmt.Errorf(
			"there is no audit log in %s: hako serve and hako call begin one, unless audit.disabled is set",
			place,
		)
	}
	if err != nil {
		return err
	}
	return do(place)
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/backup"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/report"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Back up hako's databases, those of plugins and the audit log to a new directory, also while hako serves",
		Long: `Copy hako's own database, those of plugins and the audit log into the new directory DIR, also while hako
serves. Each copy of a database is of one moment and has been checked. DIR appears when it is complete. The audit log's
key is in it, so keep it as you keep the log; the key of the credentials is not: keep a copy of that elsewhere.

If the store is a PostgreSQL database, use pg_dump instead.`,
		Args: arguments(1, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			if err := backup.CheckStore(c.Store); err != nil {
				return err
			}
			dir := a.path(args[0])
			operation := &audit.Operation{Action: "backup.create", Detail: map[string]string{"dir": dir}}
			var files []backup.File
			err := a.audited(cmd.Context(), c, operation, func() (err error) {
				files, err = backup.Create(cmd.Context(), c.Store, dir)
				return err
			})
			if err != nil {
				return err
			}
			return report.Databases(a.stdout, "Wrote", files, dir)
		}),
	}
}

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Restore the databases and the audit log from a backup",
		Long: `Restore the databases and the audit log from the backup DIR. hako must not run, and neither may exist yet:
move the old directory (store in hako.yaml) away first. The key of the credentials is not in a backup: restore it
too. The audit log records that it was restored.`,
		Args: arguments(1, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			if err := backup.CheckStore(c.Store); err != nil {
				return err
			}
			files, err := backup.Restore(cmd.Context(), a.path(args[0]), c.Store)
			if err != nil {
				return err
			}
			// The log to record it in has only now come back.
			operation := &audit.Operation{Action: "backup.restore", Detail: map[string]string{"dir": a.path(args[0])}}
			if err := a.audited(cmd.Context(), c, operation, func() error { return nil }); err != nil {
				return fmt.Errorf("the backup is in place: %w", err)
			}
			return report.Databases(a.stdout, "Restored", files, c.Store)
		}),
	}
}

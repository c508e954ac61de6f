package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/govern/audit"
)

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
			return printDatabases(a.stdout, "Restored", files, c.Store)
		}),
	}
}

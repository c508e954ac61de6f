package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/backup"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy hako's databases, those of plugins and the audit log into a new directory, also while hako serves",
		Long: `Copy hako's own database, those of plugins and the audit log into the new directory DIR, also while hako serves. Each copy of a database
is of one moment and has been checked. DIR appears when it is complete. The audit log's key is in it, so keep it as you keep the log; the key
of the credentials is not: keep a copy of that elsewhere.

Where the store is a PostgreSQL database, that is what holds the state: use pg_dump.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if err := inDirectory(c); err != nil {
				return err
			}
			var files []backup.File
			err = a.audited(cmd.Context(), c,
				&audit.Operation{Action: "backup.create", Detail: map[string]string{"dir": a.path(args[0])}}, func() error {
					files, err = backup.Create(cmd.Context(), c.Store, a.path(args[0]))
					return err
				},
			)
			if err != nil {
				return err
			}
			return a.printDatabases("Wrote", files, a.path(args[0]))
		},
	}
}

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Put the databases and the audit log of a backup in place",
		Long: `Put the databases and the audit log of the backup DIR where hako keeps them. hako must not run, and there must be neither yet: move the
old directory (store in hako.yaml) away first. The key of the credentials is not in a backup: put it back too. The audit log records that it was
restored.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if err := inDirectory(c); err != nil {
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
			return a.printDatabases("Restored", files, c.Store)
		},
	}
}

// inDirectory reports that the state is not in a directory.
func inDirectory(c *config.Config) error {
	if !store.IsURL(c.Store) {
		return nil
	}
	return fmt.Errorf(
		"hako's state is in the database %s: copy that with pg_dump --format=custom, put it back with pg_restore, and keep "+
			"audit.key and secrets.key elsewhere (docs/store.md)",
		store.Redacted(c.Store),
	)
}

func (a *app) printDatabases(done string, files []backup.File, dir string) error {
	var total, log int64
	databases := 0
	for _, file := range files {
		total += file.Bytes
		if file.Audit() {
			log += file.Bytes
			continue
		}
		databases++
		if err := printf(a.stdout, "%-40s %10s\n", file.Title(), strictyaml.FormatSize(file.Bytes)); err != nil {
			return err
		}
	}
	if databases < len(files) {
		printf(a.stdout, "%-40s %10s\n", "audit log", strictyaml.FormatSize(log))
	}
	return printf(a.stdout, "%s %d databases, %s: %s\n", done, databases, strictyaml.FormatSize(total), dir)
}

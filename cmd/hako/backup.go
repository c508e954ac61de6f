package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/internal/strictyaml"
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
			return printDatabases(a.stdout, "Wrote", files, dir)
		}),
	}
}

// printDatabases prints the files of a backup: each database, and the audit log as one.
func printDatabases(out io.Writer, done string, files []backup.File, dir string) error {
	var total, log int64
	databases := 0
	for _, file := range files {
		total += file.Bytes
		if file.Audit() {
			log += file.Bytes
			continue
		}
		databases++
		printf(out, "%-40s %10s\n", file.Title(), strictyaml.FormatSize(file.Bytes))
	}
	if databases < len(files) {
		printf(out, "%-40s %10s\n", "audit log", strictyaml.FormatSize(log))
	}
	return printf(out, "%s %s, %s: %s\n", done, terminal.Count(databases, "database"),
		strictyaml.FormatSize(total), dir)
}

package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/backup"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy hako's own database and those of plugins into a new directory, also while hako serves",
		Long: `Copy hako's own database and those of plugins into the new directory DIR, also while hako serves. Each copy is of one moment and has
been checked. DIR appears when it is complete. The key of the credentials is not in it: keep a copy of that elsewhere.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			var files []backup.File
			err = a.audited(cmd.Context(), c, &deed{action: "backup.create", detail: map[string]string{"dir": a.path(args[0])}}, func() error {
				files, err = backup.Create(cmd.Context(), c.Store, a.path(args[0]))
				return err
			})
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
		Short: "Put the databases of a backup in place",
		Long: `Put the databases of the backup DIR where hako keeps them. hako must not run, and there must be no databases yet: move the old
directory (store in hako.yaml) away first. The key of the credentials is not in a backup: put it back too.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			var files []backup.File
			err = a.audited(cmd.Context(), c, &deed{action: "backup.restore", detail: map[string]string{"dir": a.path(args[0])}}, func() error {
				files, err = backup.Restore(cmd.Context(), a.path(args[0]), c.Store)
				return err
			})
			if err != nil {
				return err
			}
			return a.printDatabases("Restored", files, c.Store)
		},
	}
}

func (a *app) printDatabases(done string, files []backup.File, dir string) error {
	var total int64
	for _, file := range files {
		total += file.Bytes
		if _, err := fmt.Fprintf(a.stdout, "%-40s %10s\n", printable(whose(file.Path)), strictyaml.FormatSize(file.Bytes)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s %d databases, %s: %s\n", done, len(files), strictyaml.FormatSize(total), dir)
	return err
}

// whose says in words which database a file is.
func whose(file string) string {
	dir, name := path.Split(file)
	plugin, ok := strings.CutPrefix(path.Clean(dir), sqlbroker.Folder+"/")
	tenant, known := sqlbroker.Tenant(name)
	switch {
	case !ok || !known:
		return file
	case tenant == "":
		return "plugin " + plugin
	}
	return "plugin " + plugin + ", tenant " + tenant
}

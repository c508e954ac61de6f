package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/store"
)

func (a *app) pluginRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a plugin from the plugin folder, with its consent",
		Long: `Remove a plugin: its file and the manifest beside it, its entry in the lock file, and your consent. A
hako that is serving stops offering its tools; calls in flight finish. Data, settings and folders stay, and are
listed. A copy of the file is kept for 30 days.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(),
		RunE: a.withFolder(func(cmd *cobra.Command, c *config.Config, folder *install.Folder, args []string) error {
			return a.withShared(cmd.Context(), c, c.OpenStore, func(s *store.Store) error {
				consents, err := server.LoadConsents(cmd.Context(), c, s)
				if err != nil {
					return err
				}
				return a.remove(cmd.Context(), c, folder, args[0], consents)
			})
		}),
	}
}

// remove removes a plugin, and its consent unless consents is nil, and prints what is left.
func (a *app) remove(ctx context.Context, c *config.Config, folder *install.Folder, name string,
	consents *grant.File) error {
	var r *install.Removal
	operation := &audit.Operation{Action: "plugin.remove", Target: audit.Target{Plugin: name}}
	err := a.audited(ctx, c, operation, func() (err error) {
		r, err = folder.Remove(ctx, name, consents)
		return err
	})
	if err != nil {
		return err
	}
	return printRemoval(a.stdout, r)
}

// printRemoval prints what was removed and what is left.
func printRemoval(out io.Writer, r *install.Removal) (err error) {
	for _, what := range r.Removed {
		err = printf(out, "removed: %s\n", what)
	}
	for _, what := range r.Left {
		err = printf(out, "left:    %s\n", what)
	}
	return err
}

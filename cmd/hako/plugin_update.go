package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
)

func (a *app) pluginOutdatedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "outdated",
		Short: "List installed plugins that have a newer version",
		Long: `List the plugins of the lock file whose source has another version: a newer tag, a moved tag, or another
file at the URL. Nothing is changed.`,
		Args: arguments(0, 0),
		RunE: a.withFolder(func(cmd *cobra.Command, _ *config.Config, folder *install.Folder, _ []string) error {
			return a.eachNewer(cmd.Context(), folder, nil, func(n *install.Newer) error {
				return printf(a.stdout, "%s %s: %s\n", n.Name, n.Installed, n.Found)
			})
		}),
	}
}

func (a *app) pluginUpdateCommand() *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "update [NAME]",
		Short: "Update installed plugins to their newest version",
		Long: `Update the installed plugin, or all of them, to the newest version, and show how its permissions, tools
and schemas differ. A version in service stays until you approve the new one, unless updates in hako.yaml allows
versions that ask for no more.`,
		Args:              arguments(0, 1),
		ValidArgsFunction: a.completePlugins(),
		RunE: a.withFolder(func(cmd *cobra.Command, c *config.Config, folder *install.Folder, args []string) error {
			return a.eachNewer(cmd.Context(), folder, args, func(n *install.Newer) error {
				p, err := folder.Update(cmd.Context(), n)
				if err != nil {
					return err
				}
				if dryRun {
					return printChanges(a.stdout, p, c.Locale)
				}
				return a.place(cmd.Context(), c, "plugin.update", p)
			})
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	return cmd
}

// eachNewer calls do with the newer versions of the named plugins, or of all in the lock file.
func (a *app) eachNewer(ctx context.Context, folder *install.Folder, names []string,
	do func(*install.Newer) error) error {
	found, err := folder.EachNewer(ctx, names, do)
	if err != nil || found {
		return err
	}
	return printf(a.stderr, "There are no newer versions.\n")
}

func (a *app) pluginRollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME",
		Short: "Restore the previous version of a plugin",
		Long: `Restore the version of a plugin before the last update, from a copy on this machine or from its source.
It needs your consent like every file. Another rollback undoes the rollback.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(),
		RunE: a.withFolder(func(cmd *cobra.Command, c *config.Config, folder *install.Folder, args []string) error {
			p, err := folder.Previous(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.place(cmd.Context(), c, "plugin.rollback", p)
		}),
	}
}

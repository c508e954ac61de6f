package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
)

func (a *app) pluginSyncCommand() *cobra.Command {
	check, prune, from := false, false, ""
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Make the plugin folder match the lock file",
		Long: `Make the plugin folder match the lock file, hako.lock.yaml beside the consents. A missing or different
file is replaced by one with the digest in the lock file, from a copy on this machine or from its source. Plugins
without an entry are listed, and stay unless --prune is given.`,
		Args: arguments(0, 0),
		RunE: a.withFolder(func(cmd *cobra.Command, c *config.Config, folder *install.Folder, _ []string) error {
			if from != "" {
				if err := folder.UseBundle(a.path(from)); err != nil {
					return err
				}
			}
			differences, err := folder.Differences()
			if err != nil {
				return err
			}
			if len(differences) == 0 {
				printf(a.stderr, "The plugin folder matches the lock file.\n")
			}
			errs := []error{a.syncUnlocked(cmd.Context(), c, folder, prune && !check)}
			for _, d := range differences {
				if check {
					errs = append(errs, d.Err())
					continue
				}
				p, err := folder.Restore(cmd.Context(), d)
				if err == nil {
					err = a.place(cmd.Context(), c, "plugin.sync", p)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing, and fail if the folder differs")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove plugins without an entry in the lock file; their consents stay")
	cmd.Flags().StringVar(&from, "from", "",
		"a bundle, or another OCI layout (a tar file or a directory), to read plugins from instead of the network")
	return cmd
}

// syncUnlocked names the plugins without an entry in the lock file, or removes them.
func (a *app) syncUnlocked(ctx context.Context, c *config.Config, folder *install.Folder, prune bool) error {
	names, err := folder.Unlocked()
	for _, name := range names {
		if prune {
			err = errors.Join(err, a.remove(ctx, c, folder, name, nil))
			continue
		}
		printf(a.stderr, "%s is not in the lock file and stays: hako plugin remove %[1]s, or sync --prune for all\n",
			name)
	}
	return err
}

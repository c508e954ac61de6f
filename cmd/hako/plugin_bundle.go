package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/frontend/terminal"
)

func (a *app) pluginBundleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "bundle FILE.tar",
		Short: "Write the plugins of the lock file to one file, for machines without a network",
		Long: `Write the plugins of the lock file to a tar file in the form of an OCI layout. On a machine without a
network, hako plugin sync --from FILE.tar fills the plugin folder from it. Plugins from registries keep their manifests
and signatures.`,
		Args: arguments(1, 1),
		RunE: a.withFolder(func(cmd *cobra.Command, _ *config.Config, folder *install.Folder, args []string) error {
			count, leftOut, err := folder.Bundle(cmd.Context(), a.path(args[0]))
			if err != nil {
				return err
			}
			for _, problem := range leftOut {
				printf(a.stderr, "left out: %v\n", problem)
			}
			return printf(a.stdout, "%s has %s of the lock file\nNext: hako plugin sync --from %[1]s\n",
				args[0], terminal.Count(count, "plugin"))
		}),
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/app/report"
)

func (a *app) pluginCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "Review a plugin's manifest and code",
		Long: `Review a plugin file, or all in a folder: handlers without an entry in the manifest and the reverse,
imports without a permission, schemas, permissions that are too broad, missing texts. The plugin lists its handlers
in a sandbox without any grants.

Exit codes: 0 no errors (there may be warnings), 1 errors, 2 usage.`,
		Args: arguments(1, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			files, err := pluginfile.WasmFiles(a.path(args[0]))
			if err != nil {
				return err
			}
			ok := true
			for _, file := range files {
				findings, err := pluginfile.Review(cmd.Context(), file, c.Cache, c.MaxPluginSize)
				ok = report.Review(a.stdout, file, findings, err) && ok
			}
			return failIf(!ok, nil)
		}),
	}
}

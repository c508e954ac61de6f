package main

import "github.com/spf13/cobra"

func (a *app) pluginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "List, approve, write and check plugins",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(
		a.pluginListCommand(), a.pluginAddCommand(), a.pluginInspectCommand(), a.pluginApproveCommand(),
		a.pluginRevokeCommand(),
		a.pluginNewCommand(), a.pluginBuildCommand(), a.pluginPackCommand(), a.pluginCheckCommand(),
	)
	return cmd
}

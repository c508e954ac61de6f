package main

import "github.com/spf13/cobra"

func (a *app) pluginCommand() *cobra.Command {
	return groupCommand("plugin", "List, approve, write and check plugins",
		a.pluginListCommand(), a.pluginSearchCommand(), a.pluginAddCommand(), a.pluginInspectCommand(),
		a.pluginApproveCommand(), a.pluginRevokeCommand(), a.pluginSyncCommand(), a.pluginBundleCommand(),
		a.pluginRemoveCommand(), a.pluginOutdatedCommand(), a.pluginUpdateCommand(), a.pluginRollbackCommand(),
		a.pluginNewCommand(), a.pluginBuildCommand(), a.pluginPackCommand(), a.pluginCheckCommand(),
		a.pluginConformanceCommand(),
		a.pluginPushCommand(), a.pluginIndexCommand())
}

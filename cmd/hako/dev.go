package main

import "github.com/spf13/cobra"

func (a *app) devCommand() *cobra.Command {
	return groupCommand("dev", "Commands for authors of tools", a.devPluginCommand())
}

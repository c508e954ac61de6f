package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/report"
)

func (a *app) pluginListCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the plugins, in service or not",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				signers, err := inspect.LoadSigners(v.config)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(inspect.List(v.plugins, signers))
				}
				if len(v.plugins) == 0 {
					return printf(a.stderr, "There are no plugins: name a folder with --plugins, "+
						"or start one with hako plugin new\n")
				}
				defer report.Remedies(a.stderr, v.plugins)
				return report.Plugins(a.stdout, v.plugins, signers)
			})
		},
	})
}

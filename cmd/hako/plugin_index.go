package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/terminal"
)

func (a *app) pluginIndexCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "index FILE.yaml [FOLDER|FILE.wasm|oci://REPOSITORY]...",
		Short: "Write a searchable index of plugins",
		Long: `Write an index that hako plugin search reads, of plugin files in the folder of the index or below it and
of plugins in registries. Its content is read from the plugins: names, versions, digests, descriptions and what they
ask for. A repository without a tag is listed with its newest version. The same plugins give the same file. Without
plugins, an existing index is checked. Put it on a web server, in a registry or in git (docs/registries.md).`,
		Example: `  hako plugin index plugins/index.yaml plugins
  hako plugin index index.yaml oci://registry.example.com/tools/weather oci://registry.example.com/tools/notes:1.0.0
  hako plugin index index.yaml`,
		Args: arguments(1, 1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.path(args[0])
			if len(args) == 1 {
				if err := pluginfile.CheckIndex(file); err != nil {
					return err
				}
				return printf(a.stdout, "%s is a valid index\n", file)
			}
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			for i, source := range args {
				if !pluginfile.IsAddress(source) {
					args[i] = a.path(source)
				}
			}
			count, err := pluginfile.WriteIndex(cmd.Context(), c, file, args[1:])
			if err != nil {
				return err
			}
			return printf(a.stdout, "%s lists %s\n"+
				"Next: add it to index.plugins of hako.yaml on the machines that search it\n",
				file, terminal.Count(count, "plugin"))
		},
	}
}

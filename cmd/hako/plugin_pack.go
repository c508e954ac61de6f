package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/terminal"
)

func (a *app) pluginPackCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "pack WASM MANIFEST",
		Short: "Embed a manifest into a plugin file",
		Long: `Embed the manifest into the plugin file as a custom section, so that one file is the whole plugin. This
works for any language. An existing embedded manifest is replaced.`,
		Args: arguments(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				output = args[0]
			}
			wasm, err := pluginfile.Pack(a.path(args[0]), a.path(args[1]), a.path(output))
			if err != nil {
				return err
			}
			return printf(a.stdout, "%s (%s)\n", a.path(output), terminal.Size(len(wasm)))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default WASM itself)")
	return cmd
}

package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/pluginfile"
	"github.com/hako-run/hako/internal/terminal"
)

func (a *app) pluginBuildCommand() *cobra.Command {
	var manifestFile, output string
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Compile a plugin, with its manifest inside",
		Long: `Compile the plugin in DIR and embed its manifest: manifest.yaml or NAME.yaml in DIR, where NAME is DIR's. recordings.json in DIR, if
there is one, is embedded too, for MOCK_MODE. The result is DIR/dist/NAME.wasm. The standard Go compiler builds it, or, for a component,
what DIR has: npm with a package.json, cargo with a Cargo.toml, componentize-py with a requirements.txt.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.path(args[0])
			if manifestFile != "" {
				manifestFile = a.path(manifestFile)
			}
			source, err := pluginfile.ReadSource(dir, manifestFile)
			if err != nil {
				return err
			}
			wasm, err := pluginfile.Compile(cmd.Context(), dir, source.Name)
			if err != nil {
				return err
			}
			out := filepath.Join(dir, "dist", source.Name+".wasm")
			if output != "" {
				out = a.path(output)
			}
			if wasm, err = manifest.Embed(wasm, source.Sections); err != nil {
				return err
			}
			if err := pluginfile.Place(out, wasm); err != nil {
				return err
			}
			return printf(a.stdout, "%s (%s)\n", out, terminal.Size(len(wasm)))
		},
	}
	cmd.Flags().StringVar(&manifestFile, "manifest", "",
		"manifest to embed (default DIR/manifest.yaml or DIR/NAME.yaml)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default DIR/dist/NAME.wasm)")
	return cmd
}

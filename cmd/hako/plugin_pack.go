package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

func (a *app) pluginPackCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "pack WASM MANIFEST",
		Short: "Embed a manifest into a plugin file",
		Long: `Embed the manifest into the plugin file as a custom section, so that one file is the whole plugin. This works for any language. A
manifest that is inside already is replaced.`,
		Args: arguments(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				output = args[0]
			}
			return a.pack(a.path(args[0]), a.path(args[1]), a.path(output))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default WASM itself)")
	return cmd
}

func (a *app) pack(wasmFile, manifestFile, out string) error {
	text, err := os.ReadFile(manifestFile)
	if err != nil {
		return err
	}
	wasm, err := os.ReadFile(wasmFile)
	if err != nil {
		return err
	}
	sections := map[string][]byte{abi.ManifestSection: text}
	if wasm, err = manifest.Embed(wasm, sections); err != nil {
		return fmt.Errorf("pack %s: %w", wasmFile, err)
	}
	module, err := manifest.Read(wasm)
	if err != nil {
		return fmt.Errorf("pack %s: %w", wasmFile, err)
	}
	if _, err := module.ParseManifest(); err != nil {
		return fmt.Errorf("%s:\n%w", manifestFile, err)
	}
	return a.writePlugin(out, wasm, sections)
}

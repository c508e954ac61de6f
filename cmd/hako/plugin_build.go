package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/store"
)

func (a *app) pluginBuildCommand() *cobra.Command {
	var manifestFile, output string
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a plugin, with its manifest inside",
		Long: `Compile the plugin in DIR (default: the current directory) and embed its manifest: manifest.yaml or
NAME.yaml in DIR, where NAME is DIR's. The plugin then lists its handlers in a sandbox without any grants, and those
that the manifest lacks, or the plugin, are errors. recordings.json in DIR, if there is one, is embedded too, for MOCK_MODE. The
result is DIR/dist/NAME.wasm. The standard Go compiler builds it, or what DIR has: npm with a package.json, cargo with a
Cargo.toml, zig with a build.zig, componentize-py with a requirements.txt, make with a Makefile (make build/NAME.wasm).`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := a.pluginDir(args)
			if err != nil {
				return err
			}
			if manifestFile != "" {
				manifestFile = a.path(manifestFile)
			}
			if output != "" {
				output = a.path(output)
			}
			out, wasm, err := pluginfile.Build(cmd.Context(), dir, manifestFile, output)
			if err != nil {
				return err
			}
			if err := printf(a.stdout, "%s (%s)\n", out, terminal.Size(len(wasm))); err != nil {
				return err
			}
			return errors.Join(a.reviewBuilt(cmd, out), a.printOther(cmd, wasm))
		},
	}
	cmd.Flags().StringVar(&manifestFile, "manifest", "",
		"manifest to embed (default DIR/manifest.yaml or DIR/NAME.yaml)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default DIR/dist/NAME.wasm)")
	return cmd
}

// reviewBuilt prints why a plugin that was just built cannot do what its manifest offers, and fails then.
func (a *app) reviewBuilt(cmd *cobra.Command, file string) error {
	cache, maxSize := "", int64(1<<30)
	if c, err := config.Load(a.source(cmd)); err == nil { // building needs no configuration
		cache, maxSize = c.Cache, c.MaxPluginSize
	}
	findings, err := pluginfile.Review(cmd.Context(), file, cache, maxSize)
	findings = slices.DeleteFunc(findings, func(f manifest.Finding) bool { return f.Severity != manifest.SeverityError })
	if len(findings) == 0 && err == nil {
		return nil
	}
	printReview(a.stderr, file, findings, err)
	return failIf(true, nil)
}

// printOther prints that a version other than the built one is in service and stays there.
func (a *app) printOther(cmd *cobra.Command, wasm []byte) error {
	c, err := config.Load(a.source(cmd))
	if err != nil {
		return nil // building needs no configuration
	}
	return a.withShared(cmd.Context(), c, c.InspectStore, func(s *store.Store) error {
		file, err := server.LoadConsents(cmd.Context(), c, s)
		if err != nil {
			return err
		}
		other, err := inspect.OtherApproved(file, wasm, grant.UpdateRule(c.Updates))
		if other != "" {
			printf(a.stdout, "%s\n", other)
		}
		return err
	})
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/pluginfile"
	"github.com/hako-run/hako/internal/report"
)

func (a *app) pluginInspectCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "inspect FILE|NAME",
		Short: "Show what a plugin is, asks for and may do",
		Long: `Show what a plugin is: its manifest, digest and imports, what it asks for and what it is granted, its
configuration and limits. Everything is read from the file, without running the plugin.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				status, err := a.locate(v, args[0])
				if err != nil {
					return err
				}
				plugin, err := inspect.New(status, v.config, shippedPlugins())
				if err != nil {
					return err
				}
				return show(a, plugin, report.Plugin)
			})
		},
	})
}

// locate finds a plugin of the configuration by name or file, or else reads the file, which is then in no folder.
func (a *app) locate(v *view, argument string) (*host.Status, error) {
	file := a.path(argument)
	status, err := inspect.Find(v.plugins, argument, file)
	if err == nil {
		return status, nil
	}
	if _, statErr := os.Stat(file); statErr != nil {
		return nil, err
	}
	m, module, _, err := pluginfile.Read(file, v.config.MaxPluginSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	status = &host.Status{Path: file, Name: m.Name, Version: m.Version, Digest: module.Digest, Manifest: m,
		Reason: "it is in none of the plugin folders"}
	if err := v.host.CheckFile(m, module); err != nil {
		status.State, status.Reason = host.Broken, err.Error()
	}
	return status, nil
}

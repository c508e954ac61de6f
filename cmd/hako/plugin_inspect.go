package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
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
				return show(a, plugin, printPlugin)
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

// printPlugin prints what a plugin is, asks for and may do.
func printPlugin(out io.Writer, r *inspect.Report) error {
	var rows [][]any
	row := func(key string, values ...string) {
		for _, value := range values {
			rows = append(rows, []any{key, value})
			key = ""
		}
	}
	row("name", r.Name+" "+r.Version)
	row("description", strings.Split(strings.TrimSpace(r.Description), "\n")...)
	row("licence", r.License)
	row("file", r.Path)
	row("digest", r.Digest)
	if r.Signer != "" {
		row("signature", r.Signer)
	}
	row("state", strings.TrimPrefix(strings.TrimSuffix(string(r.State)+": "+r.Reason, ": "), ": "))
	row("offers", r.Offers...)
	row("is no tool", r.NoTools...)
	row("imports", r.Imports...)
	row("asks for", r.Permissions...)
	if r.Serving != "" {
		row("may do", r.Given...)
	}
	var keys, limits []string
	for _, k := range r.Config {
		keys = append(keys, configKey(k))
	}
	row("configuration", keys...)
	for _, key := range slices.Sorted(maps.Keys(r.Limits)) {
		limits = append(limits, key+" "+r.Limits[key])
	}
	row("limits", strings.Join(limits, ", "))
	return printTable(out, "", rows, func(row []any) []any { return row })
}

func configKey(k inspect.ConfigKey) string {
	text := k.Key + " (" + k.Type
	switch {
	case k.Required:
		text += ", required"
	case k.Default != nil:
		text += fmt.Sprintf(", default %v", k.Default)
	}
	return strings.TrimSuffix(text+"): "+k.Description, ": ")
}

package main

import (
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/doctor"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/server"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.configCheckCommand(), a.configShowCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Say whether hako serve would start with this configuration",
		Long: `Say whether hako serve would start with this configuration, without starting it: the file and those that it names, the environment,
tokens, folders, and that every plugin in service gets a valid configuration. Plugins that wait or are broken do not keep hako from
starting; they are reported too. No file is changed.

Exit codes: 0 all is well, 2 it is not.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.inspectPlugins(cmd, a.checkConfig) },
	}
}

// checkConfig does what "hako serve" does before it listens.
func (a *app) checkConfig(v *view) error {
	if err := server.Check(v.config); err != nil {
		return err
	}
	if _, err := server.UpstreamSpecs(v.config); err != nil {
		return err
	}
	if _, err := policy.OpenLive(v.config.Policy); err != nil {
		return err
	}
	if err := server.CheckMCP(v.config, v.host); err != nil {
		return err
	}
	for _, p := range v.plugins {
		if note := inspect.Remedy(p); note != "" {
			printf(a.stderr, "%s\n", note)
		}
	}
	for _, note := range doctor.UnusedSettings(v.config, v.plugins) {
		printf(a.stderr, "%s\n", "warning: "+note)
	}
	if slices.ContainsFunc(v.plugins, func(p host.Status) bool { return p.State == host.Broken }) {
		return &exitError{code: exitUsage}
	}
	return printf(a.stdout, "%s is valid\n", v.config.Name())
}

func (a *app) configShowCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the effective values and grants, and where each value comes from",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inspectPlugins(cmd, func(v *view) error {
				if asJSON {
					return a.printJSON(map[string]any{
						"file": v.config.File, "values": v.config.Entries(), "grants": inspect.GrantsOf(v.plugins),
					})
				}
				return a.printConfig(v)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printConfig(v *view) error {
	printf(a.stdout, "# %s\n", v.config.Name())
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range v.config.Entries() {
		value := e.Value
		if value == "" {
			value = "-"
		}
		printf(table, "%s\t%s\t%s\n", e.Key, value, e.Origin)
	}
	printf(table, "\n# What the plugins in service may do\n")
	for _, p := range v.plugins {
		if p.Serving == "" {
			continue
		}
		printf(table, "%s\n", p.Name)
		for _, line := range p.Grants.Explain(v.config.Locale) {
			printf(table, "  %s\n", line)
		}
	}
	return table.Flush()
}

package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/doctor"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
)

func (a *app) configCommand() *cobra.Command {
	return groupCommand("config", "Check and show the configuration",
		a.configCheckCommand(), a.configShowCommand())
}

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check whether hako serve would start with this configuration",
		Long: `Check whether hako serve would start with this configuration, without starting it: the file and those
that it names, the environment, tokens, folders, and the configuration of every plugin in service. Pending or broken
plugins do not keep hako from starting; they are reported too. No file is changed.

Exit codes: 0 valid, 2 invalid.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.inspectPlugins(cmd, a.checkConfig) },
	}
}

// checkConfig does what "hako serve" does before it listens.
func (a *app) checkConfig(v *view) error {
	if err := server.CheckStart(v.config, v.host); err != nil {
		return err
	}
	printRemedies(a.stderr, v.plugins, v.config.Locale)
	for _, note := range doctor.UnusedSettings(v.config, v.plugins) {
		printf(a.stderr, "%s\n", "warning: "+note)
	}
	if slices.ContainsFunc(v.plugins, func(p host.Status) bool { return p.State == host.Broken }) {
		return &exitError{code: exitUsage}
	}
	return printf(a.stdout, "%s is valid\n", v.config.Name())
}

func (a *app) configShowCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "show",
		Short: "Print the effective values and grants, and where each value comes from",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inspectPlugins(cmd, func(v *view) error {
				if a.asJSON {
					return a.printJSON(map[string]any{
						"file": v.config.File, "values": v.config.Entries(), "grants": inspect.GrantsOf(v.plugins),
					})
				}
				return printConfiguration(a.stdout, v.config, v.plugins)
			})
		},
	})
}

// printConfiguration prints the effective values of a configuration, and the grants of the plugins in service.
func printConfiguration(out io.Writer, c *config.Config, plugins []host.Status) error {
	printf(out, "# %s\n", c.Name())
	err := printTable(out, "", c.Entries(), func(e config.Entry) []any { return []any{e.Key, dash(e.Value), e.Origin} })
	printf(out, "\n# What the plugins in service may do\n")
	for _, p := range plugins {
		if p.Serving == "" {
			continue
		}
		printf(out, "%s\n", p.Name)
		for _, line := range p.Grants.Explain(c.Locale) {
			printf(out, "  %s\n", line)
		}
	}
	return err
}

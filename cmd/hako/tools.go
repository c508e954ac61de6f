package main

import (
	"errors"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/terminal"
)

func (a *app) toolsCommand() *cobra.Command {
	var asJSON bool
	var format, tenant string
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that can be called",
		Long: `List the tools that can be called: as a table, or for the prompt of a model, as a text with one line for each tool or as a JSON list of
their names, descriptions and parameters.

Upstream MCP servers are started for this, and stopped again.

With --tenant the list is without the tools of plugins that need a credential which neither the tenant nor everybody has.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			print, ok := toolFormats[format]
			if !ok {
				return usageError(cmd, errors.New(strictyaml.Unknown("format", format,
					slices.Collect(maps.Keys(toolFormats)))))
			}
			if asJSON {
				print = (*app).printToolsAsMCP
			}
			return a.withTools(cmd, func(v *view) error {
				if err := v.config.CheckTenant(tenant); err != nil {
					return err
				}
				return print(a, v, inspect.Tools(v.host, tenant, v.config.Locale))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "table", "table, text or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole list as MCP has it")
	cmd.MarkFlagsMutuallyExclusive("format", "json")
	cmd.Flags().String("locale", "en", "the language of descriptions: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	a.tenantFlag(cmd, &tenant)
	return cmd
}

// toolFormats print tools.
var toolFormats = map[string]func(*app, *view, []inspect.ToolInfo) error{
	"table": (*app).printTools,
	"text":  (*app).printToolText,
	"json":  (*app).printToolSchemas,
}

func (a *app) printToolsAsMCP(_ *view, list []inspect.ToolInfo) error { return a.printJSON(list) }

// printTools lists the tools, and says on standard error what else there would be.
func (a *app) printTools(v *view, list []inspect.ToolInfo) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range list {
		printf(table, "%s\t%s\t%s\n", t.Name, t.Plugin, terminal.Summary(t.Description))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, plugin := range v.plugins {
		if note := inspect.Remedy(plugin); note != "" {
			printf(a.stderr, "%s\n", note)
		}
	}
	return nil
}

package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/report"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) toolsCommand() *cobra.Command {
	var format, tenant string
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that can be called",
		Long: `List the tools that can be called: as a table, or for the prompt of a model, as a text with one line for
each tool or as a JSON list of their names, descriptions and parameters.

The command starts upstream MCP servers and stops them at the end.

With --tenant the list is without the tools of plugins that need a credential which neither the tenant nor everybody
has.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			print, ok := toolFormats[format]
			if !ok {
				return usageError(cmd, strictyaml.Unknown("format", format, slices.Collect(maps.Keys(toolFormats))))
			}
			return a.withTools(cmd, func(v *view) error {
				if err := v.config.CheckTenant(tenant); err != nil {
					return err
				}
				return print(a, v, inspect.Tools(v.host, terminalCaller(v.config.Locale, tenant)))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "table", "table, text, json, mcp or tokens")
	as := func(name string) func(string) error { return func(string) error { format = name; return nil } }
	cmd.Flags().BoolFunc("json", "print the whole list as MCP JSON, as --format mcp does", as("mcp"))
	cmd.Flags().BoolFunc("tokens",
		"estimate the size of the tools in a model's context, as --format tokens does", as("tokens"))
	cmd.MarkFlagsMutuallyExclusive("format", "json", "tokens")
	cmd.Flags().String("locale", "en", "the language of descriptions: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	a.tenantFlag(cmd, &tenant)
	return cmd
}

// toolFormats print tools. The table names what else there would be on standard error.
var toolFormats = map[string]func(*app, *view, []inspect.ToolInfo) error{
	"table": func(a *app, v *view, list []inspect.ToolInfo) error {
		defer report.Remedies(a.stderr, v.plugins)
		return report.Tools(a.stdout, list)
	},
	"text": func(a *app, v *view, list []inspect.ToolInfo) error {
		return report.ToolText(a.stdout, v.config.Locale, list)
	},
	"json":   func(a *app, _ *view, list []inspect.ToolInfo) error { return a.printJSON(inspect.ToolSchemas(list)) },
	"mcp":    func(a *app, _ *view, list []inspect.ToolInfo) error { return a.printJSON(list) },
	"tokens": func(a *app, _ *view, list []inspect.ToolInfo) error { return report.ToolTokens(a.stdout, list) },
}

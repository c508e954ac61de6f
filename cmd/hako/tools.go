package main

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
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

What the policy denies to you at the terminal whatever the arguments is left out, as it is for clients.

With --tenant the list is without the tools of plugins that need a credential which neither the tenant nor everybody
has.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			print, ok := toolFormats[format]
			if !ok {
				return usageError(cmd, strictyaml.Unknown("format", format, slices.Collect(maps.Keys(toolFormats))))
			}
			return a.withPolicy(cmd, func(v *view, p *policy.Policy) error {
				if err := v.config.CheckTenant(tenant); err != nil {
					return err
				}
				list, denied := inspect.Tools(v.host, terminalCaller(v.config.Locale, tenant), p)
				if denied > 0 {
					defer printf(a.stderr, "%s not listed: the policy always denies them to you here (hako policy table)\n",
						terminal.Count(denied, "tool"))
				}
				return print(a, v, list)
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
		defer printRemedies(a.stderr, v.plugins, v.config.Locale)
		return printTools(a.stdout, list)
	},
	"text": func(a *app, v *view, list []inspect.ToolInfo) error {
		return printToolText(a.stdout, v.config.Locale, list)
	},
	"json":   func(a *app, _ *view, list []inspect.ToolInfo) error { return a.printJSON(inspect.ToolSchemas(list)) },
	"mcp":    func(a *app, _ *view, list []inspect.ToolInfo) error { return a.printJSON(list) },
	"tokens": func(a *app, _ *view, list []inspect.ToolInfo) error { return printToolTokens(a.stdout, list) },
}

// printTools prints a line for each tool, with the first sentence of its description.
func printTools(out io.Writer, list []inspect.ToolInfo) error {
	return printWide(out, "NAME\tPLUGIN\tDESCRIPTION", list, func(t inspect.ToolInfo) []any {
		return []any{t.Name, t.Plugin, terminal.Sentence(strings.Join(strings.Fields(t.Description), " "))}
	})
}

// printToolTokens prints about how much of a model's context each tool takes, the largest first, and what all take
// together.
func printToolTokens(out io.Writer, list []inspect.ToolInfo) error {
	list, total := slices.Clone(list), 0
	slices.SortStableFunc(list, func(a, b inspect.ToolInfo) int { return b.Tokens() - a.Tokens() })
	for i := range list {
		total += list[i].Tokens()
	}
	err := printTable(out, "NAME\tPLUGIN\tTOKENS", list, func(t inspect.ToolInfo) []any {
		return []any{t.Name, t.Plugin, t.Tokens()}
	})
	return errors.Join(err, printf(out, "\n%s, about %d tokens of a model's context\n",
		terminal.Count(len(list), "tool"), total))
}

var toolsHeading = manifest.Text{"en": "Available tools:", "ja": "利用可能なツール:"}

// printToolText prints tools for the prompt of a model, each on one line, whatever is in its description.
func printToolText(out io.Writer, locale string, list []inspect.ToolInfo) error {
	err := printf(out, "%s\n", toolsHeading.In(locale))
	for _, t := range list {
		err = printf(out, "- %s: %s\n", t.Name,
			terminal.Sentence(strings.Join(strings.Fields(t.Description), " ")))
	}
	return err
}

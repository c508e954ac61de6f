package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/terminal"
	"github.com/hako-run/hako/internal/toolschema"
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
				return print(a, v, toolsFor(v, tenant))
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
var toolFormats = map[string]func(*app, *view, []tool) error{
	"table": (*app).printTools,
	"text":  (*app).printToolText,
	"json":  (*app).printToolSchemas,
}

func (a *app) printToolsAsMCP(_ *view, list []tool) error { return a.printJSON(list) }

// tool is one tool as MCP has it, with the plugin that it is from.
type tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Plugin       string          `json:"plugin"`
}

// toolsFor lists the tools that callers of the tenant can use.
func toolsFor(v *view, tenant string) []tool {
	locale := v.config.Locale
	list := []tool{}
	for _, t := range v.host.Catalog().View().Tools {
		if !v.host.Offered(tenant, t) {
			continue
		}
		list = append(list, tool{
			Name: t.Name, Title: t.Spec.Title.In(locale), Description: t.Spec.Description.In(locale),
			InputSchema: toolschema.Listed(t.Spec.InputSchema), OutputSchema: t.Spec.OutputSchema,
			Plugin: t.Source.Name,
		})
	}
	return list
}

// printTools lists the tools, and says on standard error what else there would be.
func (a *app) printTools(v *view, list []tool) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range list {
		printf(table, "%s\t%s\t%s\n", t.Name, t.Plugin, terminal.Summary(t.Description))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, plugin := range v.plugins {
		if note := remedy(plugin); note != "" {
			printf(a.stderr, "%s\n", note)
		}
	}
	return nil
}

// remedy says why a plugin is not in service and what to do; empty for one that is.
func remedy(plugin host.Status) string {
	switch plugin.State {
	case host.Active:
		return ""
	case host.Pending, host.Revoked:
		return fmt.Sprintf("%s: %s", plugin.State, plugin.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", plugin.State, plugin.Path, plugin.Reason)
}

// hint says what to do about an unknown tool.
func hint(h *host.Host, name string) string {
	var known []string
	for _, t := range h.Catalog().View().Tools {
		known = append(known, t.Name)
	}
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for _, plugin := range h.Plugins() {
		if plugin.Name == name && plugin.Manifest != nil {
			return "that is a plugin: it offers " + strings.Join(inspect.Offers(plugin.Manifest), ", ")
		}
		if plugin.State == host.Broken || plugin.State == host.Conflict {
			return fmt.Sprintf("hako tools lists those there are; %s is not usable (%s)", plugin.Path, plugin.Reason)
		}
	}
	return "hako tools lists those there are"
}

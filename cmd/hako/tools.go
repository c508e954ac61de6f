package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) toolsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that can be called",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				if asJSON {
					return a.printJSON(toolList(v))
				}
				return a.printTools(v)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole list as MCP has it")
	return cmd
}

// tool is one tool as MCP has it, with the plugin that it is from.
type tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Plugin       string          `json:"plugin"`
}

func toolList(v *view) []tool {
	locale := v.config.Locale
	list := []tool{}
	for _, t := range v.host.Catalog().View().Tools {
		list = append(list, tool{
			Name: t.Name, Title: t.Spec.Title.In(locale), Description: t.Spec.Description.In(locale),
			InputSchema: t.Spec.InputSchema, OutputSchema: t.Spec.OutputSchema, Plugin: t.Source.Name,
		})
	}
	return list
}

// printTools lists the tools, and says on standard error what else there would be.
func (a *app) printTools(v *view) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range toolList(v) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", t.Name, t.Plugin, summary(t.Description))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, plugin := range v.plugins {
		if note := remedy(plugin); note != "" {
			fmt.Fprintln(a.stderr, note)
		}
	}
	return nil
}

// summary is the first sentence of a description, shortened to fit a line.
func summary(description string) string {
	const most = 80
	text, _, _ := strings.Cut(strings.TrimSpace(printable(description)), "\n")
	for _, end := range []string{". ", "。"} {
		if first, _, ok := strings.Cut(text, end); ok {
			text = first + strings.TrimSpace(end)
		}
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
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
		if plugin.State == host.Broken || plugin.State == host.Conflict {
			return fmt.Sprintf("hako tools lists those there are; %s is not usable (%s)", plugin.Path, plugin.Reason)
		}
	}
	return "hako tools lists those there are"
}

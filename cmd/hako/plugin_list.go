package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/inspect"
)

func (a *app) pluginListCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins, in service or not",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				if asJSON {
					return a.printJSON(inspect.List(v.plugins))
				}
				return a.printList(v.plugins)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printList prints a line for each plugin, and the reasons of those that are not in service below.
func (a *app) printList(plugins []host.Status) error {
	if len(plugins) == 0 {
		_, err := fmt.Fprintln(a.stderr,
			"There are no plugins: name a folder with --plugins, or start one with hako plugin new")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, p := range plugins {
		printf(table, "%s\t%s\t%s\t%s\n", p.Title(), p.Version, p.State, strings.Join(p.Tools, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range plugins {
		if note := inspect.Remedy(p); note != "" {
			printf(a.stderr, "%s\n", note)
		}
	}
	return nil
}

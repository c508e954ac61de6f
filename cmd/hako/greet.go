package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
)

// greet tells the person who started the server where it and its console are, what it offers and what to try next.
func (a *app) greet(c *config.Config, url, console string, plugins []host.Status) {
	printf(a.stderr, "\nhako %s serves MCP at %s\n", thisBuild().Version, url)
	if console != "" {
		printf(a.stderr, "The console is at %s\n", console)
	}
	fmt.Fprintln(a.stderr)
	a.printPlugins(plugins)
	printf(a.stderr, "\nNext:\n")
	for _, line := range inspect.NextCommands(c, url, plugins) {
		printf(a.stderr, "  %s\n", line)
	}
	fmt.Fprintln(a.stderr)
}

func (a *app) printPlugins(plugins []host.Status) {
	if len(plugins) == 0 {
		fmt.Fprintln(a.stderr, "  There are no plugins yet.")
		return
	}
	table := tabwriter.NewWriter(a.stderr, 0, 0, 2, ' ', 0)
	for _, plugin := range plugins {
		what := strings.Join(plugin.Tools, ", ")
		if plugin.State != host.Active {
			what = plugin.Reason
		}
		printf(table, "  %s\t%s\t%s\n", plugin.Title(), plugin.State, what)
	}
	table.Flush()
}

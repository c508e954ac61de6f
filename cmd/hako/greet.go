package main

import (
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/config"
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
	for _, line := range next(c, url, plugins) {
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

// next proposes commands, those that something waits for first.
func next(c *config.Config, url string, plugins []host.Status) []string {
	var lines []string
	tool, accounts := "", false
	for _, plugin := range plugins {
		approve := "hako plugin approve " + plugin.Name
		switch {
		case plugin.State == host.Pending && strings.Contains(plugin.Reason, approve):
			lines = append(lines, approve+folders(c))
		case plugin.State == host.Pending:
			accounts = true // it waits for a credential
		}
		if plugin.State == host.Active && len(plugin.Tools) > 0 && (tool == "" || plugin.Name == "weather") {
			tool = plugin.Tools[0]
		}
	}
	switch {
	case tool == "get_weather":
		lines = append(lines, `hako call get_weather '{"location":"東京"}'`)
	case tool != "":
		lines = append(lines, "hako tools"+folders(c))
	case len(plugins) == 0:
		lines = append(lines, "hako plugin new hello")
	}
	if accounts {
		lines = append(lines, "hako dev fakes          tries the tools that need accounts, without any")
	}
	return append(lines, "hako mcp-config claude-code --url "+url)
}

// folders repeats the plugin folders that were named on the command line.
func folders(c *config.Config) string {
	text := ""
	if strings.HasPrefix(c.Origin("plugins"), "flag") {
		for _, folder := range c.Plugins {
			text += " --plugins " + shellWord(folder)
		}
	}
	return text
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./\\-]+$`)

// shellWord writes text so that a shell takes it for one word.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
)

// NextCommands proposes commands after a start. The first ones succeed on every machine; those that need a decision come
// last. url is the address of the MCP endpoint.
func NextCommands(c *config.Config, url string, plugins []host.Status) []string {
	var calls, approvals []string
	tools, accounts := false, false
	for _, plugin := range plugins {
		switch {
		case plugin.State == host.Pending && plugin.NeedsConsent:
			approvals = append(approvals, plugin.Because.Command+FolderFlags(c))
		case plugin.State == host.Pending:
			accounts = true // it waits for a credential
		}
		if plugin.State != host.Active {
			continue
		}
		tools = tools || len(plugin.Tools) > 0
		for _, example := range examples {
			if slices.Contains(plugin.Tools, example.tool) {
				calls = append(calls, "hako call "+example.tool+" "+example.arguments)
			}
		}
	}
	switch {
	case len(calls) > 0:
	case tools:
		calls = []string{"hako tools" + FolderFlags(c)}
	case len(plugins) == 0:
		calls = []string{"hako plugin new hello"}
	}
	lines := append(calls, "hako mcp-config claude-code --url "+url)
	if accounts {
		lines = append(lines, "hako-dev fakes          tries the tools that need accounts, without any")
	}
	return append(lines, approvals...)
}

// examples are calls of shipped tools for everybody's first minutes.
var examples = []struct{ tool, arguments string }{
	{"file_write", "path=hello.txt content=hello overwrite=true"},
	{"get_weather", "location=東京"},
}

// NextStep proposes what to do with a plugin that is in service since its approval. It may be empty.
func NextStep(c *config.Config, h *host.Host, p *host.Status) string {
	wanted := missingCredentials(h, p.Name)
	switch {
	case len(wanted) > 0:
		return fmt.Sprintf("set credentials.%s in %s, without which its tools are of no use (docs/credentials.md)",
			strings.Join(wanted, " or credentials."), config.FileName)
	case len(p.Tools) > 0:
		return fmt.Sprintf("hako call %s '{...}'%s", p.Tools[0], FolderFlags(c))
	}
	return ""
}

// FolderFlags repeats the flags --plugins of the command line, after a space.
func FolderFlags(c *config.Config) string {
	text := ""
	if strings.HasPrefix(c.Origin("plugins"), "flag") {
		for _, folder := range c.Plugins {
			text += " --plugins " + terminal.ShellWord(folder)
		}
	}
	return text
}

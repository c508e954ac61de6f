package inspect

import (
	"fmt"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
)

// NextCommands proposes commands after a start, the urgent ones first. url is the address of the MCP endpoint.
func NextCommands(c *config.Config, url string, plugins []host.Status) []string {
	var lines []string
	tool, accounts := "", false
	for _, plugin := range plugins {
		approve := "hako plugin approve " + plugin.Name
		switch {
		case plugin.State == host.Pending && strings.Contains(plugin.Reason, approve):
			lines = append(lines, approve+FolderFlags(c))
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
		lines = append(lines, "hako tools"+FolderFlags(c))
	case len(plugins) == 0:
		lines = append(lines, "hako plugin new hello")
	}
	if accounts {
		lines = append(lines, "hako-dev fakes          tries the tools that need accounts, without any")
	}
	return append(lines, "hako mcp-config claude-code --url "+url)
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

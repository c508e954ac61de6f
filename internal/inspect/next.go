package inspect

import (
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/terminal"
)

// NextCommands proposes commands after a start, those that something waits for first. url is where MCP is served.
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
		lines = append(lines, "hako dev fakes          tries the tools that need accounts, without any")
	}
	return append(lines, "hako mcp-config claude-code --url "+url)
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

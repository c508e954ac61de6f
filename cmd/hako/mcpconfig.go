package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/cmd/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// client says how one MCP client wants its servers described.
type client struct {
	// where is the file to paste into, and what to do then.
	where string
	// servers is the top key.
	servers string
	// typed clients want the transport named.
	typed bool
	// token is how the client's configuration refers to a token that is kept elsewhere. Empty: the client has no HTTP.
	token string
}

var clients = map[string]client{
	"claude-desktop": {
		where: "claude_desktop_config.json, in ~/Library/Application Support/Claude (macOS), %APPDATA%\\Claude (Windows) or " +
			"~/.config/Claude (Linux); then quit Claude Desktop and start it again",
		servers: "mcpServers",
	},
	"claude-code": {
		where:   ".mcp.json in the root of your project, or ~/.claude.json for all projects",
		servers: "mcpServers", typed: true, token: "${HAKO_TOKEN}",
	},
	"vscode": {
		where:   ".vscode/mcp.json in your project, or the user profile (MCP: Open User Configuration)",
		servers: "servers", typed: true, token: "${input:hako-token}",
	},
	"cursor": {
		where:   ".cursor/mcp.json in your project, or ~/.cursor/mcp.json for all projects",
		servers: "mcpServers", token: "${env:HAKO_TOKEN}",
	},
}

func (a *app) mcpConfigCommand() *cobra.Command {
	var name, url string
	var http bool
	names := slices.Sorted(maps.Keys(clients))
	cmd := &cobra.Command{
		Use:   "mcp-config " + strings.Join(names, "|"),
		Short: "Print what to paste into an MCP client's configuration",
		Long: `Print what to paste into an MCP client's configuration. The client starts hako itself and speaks to it over stdio; with --http
or --url it uses a server that is running. The file to paste into is named on standard error.`,
		Args:      arguments(1, 1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, ok := clients[args[0]]
			if !ok {
				return usageError(cmd, errors.New(strictyaml.Unknown("client", args[0], names)))
			}
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			entry, err := a.stdioEntry(client, c, cmd)
			if http || url != "" {
				entry, err = httpEntry(client, c, url)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			printf(a.stderr, "Paste this into %s:\n", client.where)
			return a.printJSON(client.snippet(name, entry))
		},
	}
	cmd.Flags().StringVar(&name, "name", "hako", "what the client calls the server")
	cmd.Flags().BoolVar(&http, "http", false, "use the HTTP server of this configuration")
	cmd.Flags().StringVar(&url, "url", "", "use the HTTP server at this URL")
	return cmd
}

// serverEntry describes one server to a client.
type serverEntry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

func (c client) snippet(name string, entry *serverEntry) map[string]any {
	snippet := map[string]any{c.servers: map[string]any{name: entry}}
	if strings.HasPrefix(c.token, "${input:") && len(entry.Headers) > 0 {
		snippet["inputs"] = []map[string]any{{
			"type": "promptString", "id": "hako-token", "description": "Token for hako", "password": true,
		}}
	}
	return snippet
}

// stdioEntry starts this program. Clients run it in a directory of their own choosing, so that every path is absolute.
func (a *app) stdioEntry(client client, c *config.Config, cmd *cobra.Command) (*serverEntry, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(a.path("."))
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--stdio", "--directory", dir}
	if c.File != "" {
		args = []string{"serve", "--stdio", "--config", c.File}
	}
	if cmd.Flags().Changed("plugins") {
		for _, folder := range c.Plugins {
			args = append(args, "--plugins", folder)
		}
	}
	entry := &serverEntry{Command: filepath.Clean(program), Args: args}
	if client.typed {
		entry.Type = "stdio"
	}
	return entry, nil
}

func httpEntry(client client, c *config.Config, url string) (*serverEntry, error) {
	if client.token == "" {
		return nil, errors.New("this client takes only stdio servers in its configuration: leave out --http and --url")
	}
	entry := &serverEntry{URL: url}
	if url == "" {
		entry.URL = c.HTTP.URL()
	}
	if client.typed {
		entry.Type = "http"
	}
	if len(c.HTTP.Auth.Tokens) > 0 {
		entry.Headers = map[string]string{"Authorization": "Bearer " + client.token}
	}
	return entry, nil
}

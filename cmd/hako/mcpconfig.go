package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// client says how one MCP client wants its servers described.
type client struct {
	// where is the file to paste into, and what to do then.
	where string
	// token is how the client's configuration refers to a token that is kept elsewhere. Empty: the client has no HTTP.
	token string
	// login is what a person does to log in by OAuth; %s is the server's name. Empty: the client has no OAuth.
	login string
	// document is what to paste.
	document func(name string, s server) (any, error)
	// command is the client's own command that adds a server, and link the address that does; nil if it has none.
	command func(name string, s server) []string
	link    func(name string, s server) string
}

// server is how hako is reached: by starting a program, or at a URL.
type server struct {
	program string
	args    []string
	url     string
	// token refers to the token to send; empty if there is none.
	token string
}

func (s server) headers() map[string]string {
	if s.token == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + s.token}
}

// object is a JSON object with its members in order of their names.
type object = map[string]any

// under puts a server below the key that a client keeps its servers under.
func under(key string, entry func(server) object) func(string, server) (any, error) {
	return func(name string, s server) (any, error) { return object{key: object{name: entry(s)}}, nil }
}

// usual is the entry that most clients take, with the URL under the key that they want.
func usual(urlKey string) func(server) object {
	return func(s server) object {
		if s.url == "" {
			return object{"command": s.program, "args": s.args}
		}
		entry := object{urlKey: s.url}
		if headers := s.headers(); headers != nil {
			entry["headers"] = headers
		}
		return entry
	}
}

// typed is usual for clients that want the transport named.
func typed(s server) object {
	entry := usual("url")(s)
	entry["type"] = "stdio"
	if s.url != "" {
		entry["type"] = "http"
	}
	return entry
}

var clients = map[string]client{
	"claude-desktop": {
		where: "claude_desktop_config.json, in ~/Library/Application Support/Claude (macOS), %APPDATA%\\Claude (Windows) or " +
			"~/.config/Claude (Linux); then quit Claude Desktop and start it again",
		document: under("mcpServers", usual("")),
	},
	"claude-code": {
		where: ".mcp.json in the root of your project, or ~/.claude.json for all projects",
		token: "${HAKO_TOKEN}", login: "start claude, type /mcp and choose %s", document: under("mcpServers", typed),
		command: claudeCommand,
	},
	"codex": {
		where: "~/.codex/config.toml", token: "HAKO_TOKEN", login: "run: codex mcp login %s", document: codexDocument,
		command: codexCommand,
	},
	"cursor": {
		where: ".cursor/mcp.json in your project, or ~/.cursor/mcp.json for all projects",
		token: "${env:HAKO_TOKEN}", login: "choose Connect beside %s in Cursor's settings (MCP)",
		document: under("mcpServers", usual("url")), link: cursorLink,
	},
	"gemini-cli": {
		where: ".gemini/settings.json in your project, or ~/.gemini/settings.json for all projects",
		token: "${HAKO_TOKEN}", login: "start gemini and type: /mcp auth %s",
		document: under("mcpServers", usual("httpUrl")), command: geminiCommand,
	},
	"goose": {
		where: "~/.config/goose/config.yaml, or %APPDATA%\\Block\\goose\\config\\config.yaml (Windows)",
		token: "${HAKO_TOKEN}", login: "start goose: it opens a browser for %s", document: gooseDocument,
		link: gooseLink,
	},
	"opencode": {
		where: "opencode.json in your project, or ~/.config/opencode/opencode.json for all projects",
		token: "{env:HAKO_TOKEN}", login: "run: opencode mcp auth %s", document: under("mcp", opencodeEntry),
	},
	"vscode": {
		where: ".vscode/mcp.json in your project, or the user profile (MCP: Open User Configuration)",
		token: "${input:hako-token}", login: "start %s from MCP: List Servers", document: vscodeDocument,
		link: vscodeLink,
	},
	"windsurf": {
		where: "~/.codeium/windsurf/mcp_config.json; then press Refresh in the settings of Cascade",
		token: "${env:HAKO_TOKEN}", login: "choose %s in the settings of Cascade (MCP)",
		document: under("mcpServers", usual("serverUrl")),
	},
	"zed": {
		where: "~/.config/zed/settings.json (zed: open settings), or .zed/settings.json in your project",
		token: "YOUR_TOKEN", login: "open the settings of the Agent Panel and choose %s",
		document: under("context_servers", usual("url")),
	},
}

// vscodeDocument has VS Code ask for the token, which it then keeps.
func vscodeDocument(name string, s server) (any, error) {
	document := object{"servers": object{name: typed(s)}}
	if s.token != "" {
		document["inputs"] = []object{{"type": "promptString", "id": "hako-token", "description": "Token for hako",
			"password": true}}
	}
	return document, nil
}

func opencodeEntry(s server) object {
	if s.url == "" {
		return object{"type": "local", "enabled": true, "command": append([]string{s.program}, s.args...)}
	}
	entry := object{"type": "remote", "enabled": true, "url": s.url}
	if headers := s.headers(); headers != nil {
		entry["headers"], entry["oauth"] = headers, false
	}
	return entry
}

func codexDocument(name string, s server) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", tomlString(name))
	if s.url == "" {
		fmt.Fprintf(&b, "command = %s\nargs = [%s]\n", tomlString(s.program),
			strings.Join(mapped(s.args, tomlString), ", "))
		return block(b.String()), nil
	}
	fmt.Fprintf(&b, "url = %s\n", tomlString(s.url))
	if s.token != "" {
		fmt.Fprintf(&b, "bearer_token_env_var = %s\n", tomlString(s.token))
	}
	return block(b.String()), nil
}

// tomlString is a basic string of TOML, whose escapes are JSON's.
func tomlString(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // text is always encoded
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007f`)
}

func mapped(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f(s)
	}
	return out
}

func gooseDocument(name string, s server) (any, error) {
	entry := strictyaml.Mapping{{Key: "name", Value: name}, {Key: "enabled", Value: true}}
	if s.url == "" {
		entry = append(entry, strictyaml.Entry{Key: "type", Value: "stdio"},
			strictyaml.Entry{Key: "cmd", Value: s.program}, strictyaml.Entry{Key: "args", Value: s.args})
	} else {
		entry = append(entry, strictyaml.Entry{Key: "type", Value: "streamable_http"},
			strictyaml.Entry{Key: "uri", Value: s.url})
	}
	if s.token != "" {
		entry = append(entry,
			strictyaml.Entry{Key: "headers",
				Value: strictyaml.Mapping{{Key: "Authorization", Value: "Bearer " + s.token}}},
			strictyaml.Entry{Key: "env_keys", Value: []string{"HAKO_TOKEN"}})
	}
	document, err := strictyaml.Write(strictyaml.Mapping{{Key: "extensions",
		Value: strictyaml.Mapping{{Key: name, Value: entry}}}}, "")
	return block(document), err
}

func claudeCommand(name string, s server) []string {
	if s.url == "" {
		return append([]string{"claude", "mcp", "add", "--transport", "stdio", name, "--", s.program}, s.args...)
	}
	command := []string{"claude", "mcp", "add", "--transport", "http", name, s.url}
	if s.token != "" {
		command = append(command, "--header", "Authorization: Bearer "+s.token)
	}
	return command
}

func codexCommand(name string, s server) []string {
	if s.url == "" {
		return append([]string{"codex", "mcp", "add", name, "--", s.program}, s.args...)
	}
	command := []string{"codex", "mcp", "add", name, "--url", s.url}
	if s.token != "" {
		command = append(command, "--bearer-token-env-var", s.token)
	}
	return command
}

func geminiCommand(name string, s server) []string {
	if s.url == "" {
		return append([]string{"gemini", "mcp", "add", name, s.program, "--"}, s.args...)
	}
	command := []string{"gemini", "mcp", "add", "--transport", "http", name, s.url}
	if s.token != "" {
		command = append(command, "--header", "Authorization: Bearer "+s.token)
	}
	return command
}

func cursorLink(name string, s server) string {
	entry, _ := json.Marshal(usual("url")(s)) // texts alone
	return "cursor://anysphere.cursor-deeplink/mcp/install?" + url.Values{"name": {name},
		"config": {base64.StdEncoding.EncodeToString(entry)}}.Encode()
}

func vscodeLink(name string, s server) string {
	entry := typed(s)
	entry["name"] = name
	if s.token != "" {
		entry["inputs"] = []object{{"type": "promptString", "id": "hako-token", "description": "Token for hako",
			"password": true}}
	}
	data, _ := json.Marshal(entry) // texts alone
	return "vscode:mcp/install?" + strings.ReplaceAll(url.QueryEscape(string(data)), "+", "%20")
}

func gooseLink(name string, s server) string {
	q := url.Values{"id": {name}, "name": {name}, "description": {"Sandboxed tools"}}
	if s.url == "" {
		q["cmd"], q["arg"] = []string{s.program}, s.args
	} else {
		q["url"], q["type"] = []string{s.url}, []string{"streamable_http"}
	}
	return "goose://extension?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

func (a *app) mcpConfigCommand() *cobra.Command {
	var f mcpConfigFlags
	names := slices.Sorted(maps.Keys(clients))
	cmd := &cobra.Command{
		Use:   "mcp-config " + strings.Join(names, "|"),
		Short: "Print what to paste into an MCP client's configuration",
		Long: `Print what to paste into an MCP client's configuration. The client starts hako itself and speaks to it over stdio; with --http
or --url it uses a server that is running. The file to paste into is named on standard error.

With --command a command of the client is printed instead that does the same, such as "claude mcp add"; with --link the address of a link
that installs hako. With --oauth the client logs its user in, and sends no token of the configuration.`,
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
			if err := a.printMCPConfig(cmd, client, c, f); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "hako", "what the client calls the server")
	cmd.Flags().BoolVar(&f.http, "http", false, "use the HTTP server of this configuration")
	cmd.Flags().StringVar(&f.url, "url", "", "use the HTTP server at this URL")
	cmd.Flags().BoolVar(&f.oauth, "oauth", false, "let the client log its user in by OAuth, at the HTTP server")
	cmd.Flags().BoolVar(&f.command, "command", false, "print the client's own command that adds the server")
	cmd.Flags().BoolVar(&f.link, "link", false, "print a link that installs the server")
	cmd.MarkFlagsMutuallyExclusive("command", "link")
	return cmd
}

type mcpConfigFlags struct {
	name, url                  string
	http, oauth, command, link bool
}

func (a *app) printMCPConfig(cmd *cobra.Command, client client, c *config.Config, f mcpConfigFlags) error {
	s, err := a.stdioServer(c, cmd)
	if f.http || f.oauth || f.url != "" {
		s, err = httpServer(client, c, f)
	}
	if err != nil {
		return err
	}
	switch {
	case f.command && client.command == nil:
		return errors.New("this client has no command that adds a server: leave out --command")
	case f.link && client.link == nil:
		return errors.New("this client has no links that install a server: leave out --link")
	case f.command:
		printf(a.stderr, "Run this:\n")
		printf(a.stdout, "%s\n", strings.Join(mapped(client.command(f.name, s), shellWord), " "))
	case f.link:
		printf(a.stderr, "Open this on the machine of the client:\n")
		printf(a.stdout, "%s\n", client.link(f.name, s))
	default:
		document, err := client.document(f.name, s)
		if err != nil {
			return err
		}
		printf(a.stderr, "Paste this into %s:\n", client.where)
		if err := a.printDocument(document); err != nil {
			return err
		}
	}
	if f.oauth {
		printf(a.stderr, "Then log in: "+client.login+"\n", f.name)
	}
	return nil
}

func (a *app) printDocument(document any) error {
	if text, ok := document.(block); ok { // TOML or YAML
		return printf(a.stdout, "%s", text)
	}
	return a.printJSON(document)
}

// stdioServer starts this program. Clients run it in a directory of their own choosing, so that every path is absolute.
func (a *app) stdioServer(c *config.Config, cmd *cobra.Command) (server, error) {
	program, err := os.Executable()
	if err != nil {
		return server{}, err
	}
	dir, err := filepath.Abs(a.path("."))
	if err != nil {
		return server{}, err
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
	if cmd.Flags().Changed("allow-path") {
		for _, dir := range c.AllowPaths {
			args = append(args, "--allow-path", dir)
		}
	}
	return server{program: filepath.Clean(program), args: args}, nil
}

func httpServer(client client, c *config.Config, f mcpConfigFlags) (server, error) {
	switch {
	case client.token == "":
		return server{},
			errors.New("this client takes only stdio servers in its configuration: leave out --http, --url and --oauth")
	case f.oauth && f.url == "" && c.HTTP.Auth.OAuth == nil:
		return server{},
			errors.New("this configuration has no http.auth.oauth: add an issuer, or name another server with --url")
	}
	s := server{url: f.url}
	if s.url == "" {
		s.url = c.HTTP.URL()
	}
	if len(c.HTTP.Auth.Tokens) > 0 && !f.oauth {
		s.token = client.token
	}
	return s, nil
}

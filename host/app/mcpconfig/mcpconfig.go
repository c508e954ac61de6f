// Package mcpconfig writes what MCP clients need to find hako: the document for a client's configuration file, the
// client's own command that adds a server, and the link that installs one.
//
// Clients holds the known clients by name. A Server says how hako is reached; Client's functions write it in the form
// that the client expects.
package mcpconfig

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// Client is one MCP client: the form in which it lists its servers.
type Client struct {
	// Program is the client's program, by which Installed finds it. Empty: it has none with a fixed name.
	Program string
	// File is the file to paste a document into, and what to do then.
	File string
	// Token is the reference in the client's configuration to a token that is kept elsewhere. Empty: the client has no
	// HTTP.
	Token string
	// Login explains how a person logs in by OAuth; %s is the server's name. Empty: the client has no OAuth.
	Login string
	// Document returns what to paste: a Text, or a value that is encoded as JSON.
	Document func(name string, s Server) (any, error)
	// Command returns the arguments of the client's own command that adds a server. Nil: there is none.
	Command func(name string, s Server) []string
	// Link returns the address of a link that installs a server. Nil: there is none.
	Link func(name string, s Server) string
}

// Text is a document that is not JSON: TOML or YAML.
type Text string

func (s Server) headers() map[string]string {
	if s.Token == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + s.Token}
}

// object is a JSON object with its members in order of their names.
type object = map[string]any

// under puts a server below the key that a client keeps its Servers under.
func under(key string, entry func(Server) object) func(string, Server) (any, error) {
	return func(name string, s Server) (any, error) { return object{key: object{name: entry(s)}}, nil }
}

// usual returns the entry that most clients accept, with the URL under urlKey.
func usual(urlKey string) func(Server) object {
	return func(s Server) object {
		if s.URL == "" {
			return object{"command": s.Program, "args": s.Args}
		}
		entry := object{urlKey: s.URL}
		if headers := s.headers(); headers != nil {
			entry["headers"] = headers
		}
		return entry
	}
}

// typed is usual with the name of the transport.
func typed(s Server) object {
	entry := usual("url")(s)
	entry["type"] = "stdio"
	if s.URL != "" {
		entry["type"] = "http"
	}
	return entry
}

// zedToken stands for the token in Zed's settings, which have no references to one.
const zedToken = "YOUR_TOKEN"

// Clients are the known clients, by the name that "hako mcp-config" takes.
var Clients = map[string]Client{
	"claude-desktop": {
		File: "claude_desktop_config.json, in ~/Library/Application Support/Claude (macOS), %APPDATA%\\Claude (Windows) or " +
			"~/.config/Claude (Linux); then quit Claude Desktop and start it again",
		Document: under("mcpServers", usual("")),
	},
	"claude-code": {
		Program: "claude",
		File:    ".mcp.json in the root of your project, or ~/.claude.json for all projects",
		Token:   "${HAKO_TOKEN}", Login: "start claude, type /mcp and choose %s", Document: under("mcpServers", typed),
		Command: claudeCommand,
	},
	"codex": {
		Program: "codex",
		File:    "~/.codex/config.toml", Token: "HAKO_TOKEN", Login: "run: codex mcp login %s", Document: codexDocument,
		Command: codexCommand,
	},
	"cursor": {
		Program: "cursor",
		File:    ".cursor/mcp.json in your project, or ~/.cursor/mcp.json for all projects",
		Token:   "${env:HAKO_TOKEN}", Login: "choose Connect beside %s in Cursor's settings (MCP)",
		Document: under("mcpServers", usual("url")), Link: cursorLink,
	},
	"gemini-cli": {
		Program: "gemini",
		File:    ".gemini/settings.json in your project, or ~/.gemini/settings.json for all projects",
		Token:   "${HAKO_TOKEN}", Login: "start gemini and type: /mcp auth %s",
		Document: under("mcpServers", usual("httpUrl")), Command: geminiCommand,
	},
	"goose": {
		Program: "goose",
		File:    "~/.config/goose/config.yaml, or %APPDATA%\\Block\\goose\\config\\config.yaml (Windows)",
		Token:   "${HAKO_TOKEN}", Login: "start goose: it opens a browser for %s", Document: gooseDocument,
		Link: gooseLink,
	},
	"opencode": {
		Program: "opencode",
		File: "opencode.json in your project, or ~/.config/opencode/opencode.json for all projects (before " +
			"OpenCode 1.18.26, put the server directly below \"mcp\", without \"servers\")",
		Token: "{env:HAKO_TOKEN}", Login: "run: opencode mcp auth %s", Document: opencodeDocument,
	},
	"vscode": {
		Program: "code",
		File:    ".vscode/mcp.json in your project, or the user profile (MCP: Open User Configuration)",
		Token:   "${input:hako-token}", Login: "start %s from MCP: List Servers", Document: vscodeDocument,
		Link: vscodeLink,
	},
	"windsurf": {
		Program: "windsurf",
		File:    "~/.codeium/windsurf/mcp_config.json; then press Refresh in the settings of Cascade",
		Token:   "${env:HAKO_TOKEN}", Login: "choose %s in the settings of Cascade (MCP)",
		Document: under("mcpServers", usual("serverUrl")),
	},
	"zed": {
		Program: "zed",
		File:    "~/.config/zed/settings.json (zed: open settings), or .zed/settings.json in your project",
		Token:   zedToken, Login: "open the settings of the Agent Panel and choose %s",
		Document: under("context_servers", usual("url")),
	},
}

// Installed returns the names of the clients whose programs find finds, such as exec.LookPath.
func Installed(find func(program string) (string, error)) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(Clients)) {
		if program := Clients[name].Program; program != "" {
			if _, err := find(program); err == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// vscodeDocument makes VS Code ask for the token, which it then stores.
func vscodeDocument(name string, s Server) (any, error) {
	document := object{"servers": object{name: typed(s)}}
	if s.Token != "" {
		document["inputs"] = []object{{"type": "promptString", "id": "hako-token", "description": "Token for hako",
			"password": true}}
	}
	return document, nil
}

// opencodeDocument is for OpenCode 1.18.26 and later. Older versions have one level less, and refuse "servers".
func opencodeDocument(name string, s Server) (any, error) {
	entry := object{"type": "local", "command": append([]string{s.Program}, s.Args...)}
	if s.URL != "" {
		entry = object{"type": "remote", "url": s.URL}
	}
	if headers := s.headers(); headers != nil {
		entry["headers"], entry["oauth"] = headers, false
	}
	return object{"mcp": object{"servers": object{name: entry}}}, nil
}

func codexDocument(name string, s Server) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", tomlString(name))
	if s.URL == "" {
		fmt.Fprintf(&b, "command = %s\nargs = [%s]\n", tomlString(s.Program),
			strings.Join(tomlStrings(s.Args), ", "))
		return Text(b.String()), nil
	}
	fmt.Fprintf(&b, "url = %s\n", tomlString(s.URL))
	if s.Token != "" {
		fmt.Fprintf(&b, "bearer_token_env_var = %s\n", tomlString(s.Token))
	}
	return Text(b.String()), nil
}

// tomlString is a basic string of TOML, whose escapes are JSON's.
func tomlString(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // text is always encoded
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007f`)
}

func tomlStrings(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = tomlString(s)
	}
	return out
}

func gooseDocument(name string, s Server) (any, error) {
	entry := strictyaml.Mapping{{Key: "name", Value: name}, {Key: "enabled", Value: true}}
	if s.URL == "" {
		entry = append(entry, strictyaml.Entry{Key: "type", Value: "stdio"},
			strictyaml.Entry{Key: "cmd", Value: s.Program}, strictyaml.Entry{Key: "args", Value: s.Args})
	} else {
		entry = append(entry, strictyaml.Entry{Key: "type", Value: "streamable_http"},
			strictyaml.Entry{Key: "uri", Value: s.URL})
	}
	if s.Token != "" {
		entry = append(entry,
			strictyaml.Entry{Key: "headers",
				Value: strictyaml.Mapping{{Key: "Authorization", Value: "Bearer " + s.Token}}},
			strictyaml.Entry{Key: "env_keys", Value: []string{"HAKO_TOKEN"}})
	}
	document, err := strictyaml.Write(strictyaml.Mapping{{Key: "extensions",
		Value: strictyaml.Mapping{{Key: name, Value: entry}}}}, "")
	return Text(document), err
}

func claudeCommand(name string, s Server) []string {
	if s.URL == "" {
		return append([]string{"claude", "mcp", "add", "--transport", "stdio", name, "--", s.Program}, s.Args...)
	}
	command := []string{"claude", "mcp", "add", "--transport", "http", name, s.URL}
	if s.Token != "" {
		command = append(command, "--header", "Authorization: Bearer "+s.Token)
	}
	return command
}

func codexCommand(name string, s Server) []string {
	if s.URL == "" {
		return append([]string{"codex", "mcp", "add", name, "--", s.Program}, s.Args...)
	}
	command := []string{"codex", "mcp", "add", name, "--url", s.URL}
	if s.Token != "" {
		command = append(command, "--bearer-token-env-var", s.Token)
	}
	return command
}

func geminiCommand(name string, s Server) []string {
	if s.URL == "" {
		return append([]string{"gemini", "mcp", "add", name, s.Program, "--"}, s.Args...)
	}
	command := []string{"gemini", "mcp", "add", "--transport", "http", name, s.URL}
	if s.Token != "" {
		command = append(command, "--header", "Authorization: Bearer "+s.Token)
	}
	return command
}

func cursorLink(name string, s Server) string {
	entry, _ := json.Marshal(usual("url")(s)) // texts alone
	return "cursor://anysphere.cursor-deeplink/mcp/install?" + url.Values{"name": {name},
		"config": {base64.StdEncoding.EncodeToString(entry)}}.Encode()
}

func vscodeLink(name string, s Server) string {
	entry := typed(s)
	entry["name"] = name
	if s.Token != "" {
		entry["inputs"] = []object{{"type": "promptString", "id": "hako-token", "description": "Token for hako",
			"password": true}}
	}
	data, _ := json.Marshal(entry) // texts alone
	return "vscode:mcp/install?" + strings.ReplaceAll(url.QueryEscape(string(data)), "+", "%20")
}

func gooseLink(name string, s Server) string {
	q := url.Values{"id": {name}, "name": {name}, "description": {"Sandboxed tools"}}
	if s.URL == "" {
		q["cmd"], q["arg"] = []string{s.Program}, s.Args
	} else {
		q["url"], q["type"] = []string{s.URL}, []string{"streamable_http"}
	}
	return "goose://extension?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

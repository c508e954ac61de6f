package main

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/hako-run/hako/host/frontend/terminal"
)

func TestMCPConfig(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bare, configured, guarded := t.TempDir(), t.TempDir(), t.TempDir()
	file := filepath.Join(configured, "hako.yaml")
	put(t, file, []byte("http: {address: '0.0.0.0:9000', tls: {cert: a, key: b}}\n"))
	hash := "sha256:" + strings.Repeat("0", 64)
	put(t, filepath.Join(guarded, "hako.yaml"), []byte("http: {auth: {tokens: [{name: ci, hash: '"+hash+"'}]}}\n"))
	const local = "http://127.0.0.1:8420/mcp"
	tests := map[string]struct {
		dir  string
		args []string
		want string
	}{
		"claude-desktop": {bare, []string{"claude-desktop"},
			`{"mcpServers":{"hako":{"command":PROGRAM,"args":["serve","--stdio","--directory",DIR]}}}`},
		"claude-code": {bare, []string{"claude-code", "--name", "box"},
			`{"mcpServers":{"box":{"type":"stdio","command":PROGRAM,"args":["serve","--stdio","--directory",DIR]}}}`},
		"claude-code over HTTP": {bare, []string{"claude-code", "--http"},
			`{"mcpServers":{"hako":{"type":"http","url":"` + local + `"}}}`},
		"vscode": {bare, []string{"vscode", "--plugins", "dist"},
			`{"servers":{"hako":{"type":"stdio","command":PROGRAM,"args":["serve","--stdio","--directory",DIR,"--plugins",DIST]}}}`},
		"vscode with a token": {guarded, []string{"vscode", "--http"},
			`{"inputs":[{"description":"Token for hako","id":"hako-token","password":true,"type":"promptString"}],
			  "servers":{"hako":{"type":"http","url":"` + local + `","headers":{"Authorization":"Bearer ${input:hako-token}"}}}}`},
		"cursor": {configured, []string{"cursor"},
			`{"mcpServers":{"hako":{"command":PROGRAM,"args":["serve","--stdio","--config",FILE]}}}`},
		"cursor over HTTPS": {configured, []string{"cursor", "--http"},
			`{"mcpServers":{"hako":{"url":"https://127.0.0.1:9000/mcp"}}}`},
		"windsurf": {guarded, []string{"windsurf", "--http"},
			`{"mcpServers":{"hako":{"serverUrl":"` + local +
				`","headers":{"Authorization":"Bearer ${env:HAKO_TOKEN}"}}}}`},
		"gemini-cli": {guarded, []string{"gemini-cli", "--http"},
			`{"mcpServers":{"hako":{"httpUrl":"` + local + `","headers":{"Authorization":"Bearer ${HAKO_TOKEN}"}}}}`},
		"zed": {bare, []string{"zed"},
			`{"context_servers":{"hako":{"command":PROGRAM,"args":["serve","--stdio","--directory",DIR]}}}`},
		"zed over HTTP": {bare, []string{"zed", "--http"}, `{"context_servers":{"hako":{"url":"` + local + `"}}}`},
		"opencode": {bare, []string{"opencode"},
			`{"mcp":{"servers":{"hako":{"type":"local","command":[PROGRAM,"serve","--stdio","--directory",DIR]}}}}`},
		"opencode over HTTP": {guarded, []string{"opencode", "--http"},
			`{"mcp":{"servers":{"hako":{"type":"remote","url":"` + local +
				`","oauth":false,"headers":{"Authorization":"Bearer {env:HAKO_TOKEN}"}}}}}`},
		"opencode with OAuth": {guarded, []string{"opencode", "--oauth", "--url", "https://hako.example.com/mcp"},
			`{"mcp":{"servers":{"hako":{"type":"remote","url":"https://hako.example.com/mcp"}}}}`},
		"cursor elsewhere": {guarded, []string{"cursor", "--url", "https://hako.example.com/mcp"},
			`{"mcpServers":{"hako":{"url":"https://hako.example.com/mcp","headers":{"Authorization":"Bearer ${env:HAKO_TOKEN}"}}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quote := func(s string) string { return string(must(json.Marshal(s))) }
			want := strings.NewReplacer("PROGRAM", quote(program), "DIR", quote(test.dir),
				"DIST", quote(filepath.Join(test.dir, "dist")), "FILE", quote(file)).Replace(test.want)
			o := invoke(t, test.dir, append([]string{"mcp-config"}, test.args...)...)
			o.want(t, exitOK, "Paste this into")
			if got := canonical(t, o.stdout); got != canonical(t, want) {
				t.Errorf("got  %s\nwant %s", got, canonical(t, want))
			}
		})
	}
}

// TestMCPConfigAsText reads what is not JSON: TOML, YAML, commands and links.
func TestMCPConfigAsText(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bare, guarded := t.TempDir(), t.TempDir()
	put(t, filepath.Join(guarded, "hako.yaml"),
		[]byte("http: {auth: {tokens: [{name: ci, hash: 'sha256:"+strings.Repeat("0", 64)+"'}]}}\n"))
	const remote = "https://hako.example.com/mcp"
	serve := []any{"serve", "--stdio", "--directory", bare}
	type object = map[string]any
	decode := map[string]func(string) (object, error){
		"codex": func(s string) (o object, err error) { return o, toml.Unmarshal([]byte(s), &o) },
		"goose": func(s string) (o object, err error) { return o, yaml.Unmarshal([]byte(s), &o) },
	}
	for _, test := range []struct {
		client, dir string
		args        []string
		want        object
	}{
		{"codex", bare, nil, object{"mcp_servers": object{"hako": object{"command": program, "args": serve}}}},
		{"codex", guarded, []string{"--url", remote, "--name", "my box"},
			object{"mcp_servers": object{"my box": object{"url": remote, "bearer_token_env_var": "HAKO_TOKEN"}}}},
		{"codex", guarded, []string{"--url", remote, "--oauth"},
			object{"mcp_servers": object{"hako": object{"url": remote}}}},
		{"goose", bare, nil,
			object{"extensions": object{"hako": object{"name": "hako", "enabled": true, "type": "stdio", "cmd": program,
				"args": serve}}}},
		{"goose", guarded, []string{"--url", remote}, object{"extensions": object{"hako": object{
			"name": "hako", "enabled": true, "type": "streamable_http", "uri": remote,
			"headers": object{"Authorization": "Bearer ${HAKO_TOKEN}"}, "env_keys": []any{"HAKO_TOKEN"},
		}}}},
	} {
		o := invoke(t, test.dir, append([]string{"mcp-config", test.client}, test.args...)...)
		o.want(t, exitOK, "Paste this into")
		if got, err := decode[test.client](o.stdout); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %v: %v, %v\nwant %v", test.client, test.args, got, err, test.want)
		}
	}
	start := terminal.ShellWord(program) + " serve --stdio --directory " + terminal.ShellWord(bare) + "\n"
	for _, test := range []struct{ dir, line, want string }{
		{bare, "claude-code --command", "claude mcp add --transport stdio hako -- " + start},
		{guarded, "claude-code --command --url " + remote,
			"claude mcp add --transport http hako " + remote + " --header 'Authorization: Bearer ${HAKO_TOKEN}'\n"},
		{guarded, "claude-code --command --oauth --url " + remote,
			"claude mcp add --transport http hako " + remote + "\n"},
		{bare, "codex --command", "codex mcp add hako -- " + start},
		{guarded, "codex --command --url " + remote,
			"codex mcp add hako --url " + remote + " --bearer-token-env-var HAKO_TOKEN\n"},
		{guarded, "cursor --link --oauth --url " + remote, "cursor://anysphere.cursor-deeplink/mcp/install?config=" +
			url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(`{"url":"`+remote+`"}`))) + "&name=hako\n"},
		{guarded, "vscode --link --oauth --url " + remote,
			"vscode:mcp/install?" + url.QueryEscape(`{"name":"hako","type":"http","url":"`+remote+`"}`) + "\n"},
		{guarded, "goose --link --oauth --url " + remote,
			"goose://extension?description=Sandboxed%20tools&id=hako&name=hako&type=streamable_http&url=" +
				url.QueryEscape(remote) + "\n"},
	} {
		o := invoke(t, test.dir, append([]string{"mcp-config"}, strings.Fields(test.line)...)...)
		if o.want(t, exitOK); o.stdout != test.want {
			t.Errorf("%s: %s\nwant %s", test.line, o.stdout, test.want)
		}
		if strings.Contains(test.line, "--oauth") && !strings.Contains(o.stderr, "Then log in: ") {
			t.Errorf("%s: %s", test.line, o.stderr)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// canonical is JSON in one form.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return string(must(json.Marshal(value)))
}

func TestMCPConfigOAuth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `http: {auth: {oauth: {resource: "https://hako.example.com/mcp"}, proxy: {issuer: "https://id.example.com", clientId: hako}}}`
	if err := os.WriteFile(filepath.Join(dir, "hako.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "mcp-config", "codex", "--oauth").want(t, exitOK, "https://hako.example.com/mcp")
}

func TestMCPConfigFails(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "mcp-config", "claude").want(t, exitUsage,
		`unknown client "claude": known are claude-code, claude-desktop`)
	invoke(t, t.TempDir(), "mcp-config", "vscod").want(t, exitUsage, `did you mean "vscode"?`)
	invoke(t, t.TempDir(), "mcp-config", "claude-desktop", "--http").want(t, exitUsage, "stdio")
	invoke(t, t.TempDir(), "mcp-config", "zed", "--command").want(t, exitUsage, "no command")
	invoke(t, t.TempDir(), "mcp-config", "codex", "--link").want(t, exitUsage, "no links")
	invoke(t, t.TempDir(), "mcp-config", "codex", "--oauth").want(t, exitUsage, "no http.auth.oauth", "--url")
}

// TestMCPConfigToken: where the entry refers to a token, the next step says what that is.
func TestMCPConfigToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hash := "sha256:" + strings.Repeat("0", 64)
	put(t, filepath.Join(dir, "hako.yaml"), []byte("http: {auth: {tokens: [{name: ci, hash: '"+hash+"'}]}}\n"))
	invoke(t, dir, "mcp-config", "claude-code", "--http").want(t, exitOK, "with HAKO_TOKEN set", "hako token new NAME")
	invoke(t, dir, "mcp-config", "zed", "--http").want(t, exitOK, "in place of YOUR_TOKEN")
	if o := invoke(t, dir, "mcp-config", "claude-code"); strings.Contains(o.stderr, "HAKO_TOKEN") {
		t.Errorf("over stdio there is no token: %s", o)
	}
}

// TestPickClient: without a name, the only client that is installed is meant.
func TestPickClient(t *testing.T) {
	t.Parallel()
	for installed, want := range map[string]string{
		"claude":       "claude-code",
		"code":         "vscode",
		"":             "none of the known clients is installed here: name one of a",
		"claude codex": "several clients are installed here: name one of claude-code, codex",
	} {
		got, err := pickClient(nil, []string{"a"}, func(program string) (string, error) {
			if slices.Contains(strings.Fields(installed), program) {
				return program, nil
			}
			return "", exec.ErrNotFound
		})
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", installed, got, want)
		}
	}
}

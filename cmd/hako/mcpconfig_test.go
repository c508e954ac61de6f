package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestMCPConfigFails(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "mcp-config", "claude").want(t, exitUsage, `unknown client "claude": known are claude-code, claude-desktop`)
	invoke(t, t.TempDir(), "mcp-config", "vscod").want(t, exitUsage, `did you mean "vscode"?`)
	invoke(t, t.TempDir(), "mcp-config", "claude-desktop", "--http").want(t, exitUsage, "stdio")
}

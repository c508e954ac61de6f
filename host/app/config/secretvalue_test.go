package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretValue: a value of a plugin's configuration may be a reference, and is not shown.
func TestSecretValue(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLUGIN_KEY", "from-the-environment")
	text := "plugin: {github: {config: {api_key: {env: PLUGIN_KEY}, other: {file: key}, plain: text}}}\n"
	c := load(t, Source{Dir: dir, Default: []byte(text)})
	got := c.Plugin["github"].Config
	if got["api_key"] != "from-the-environment" || got["other"] != "from-a-file" || got["plain"] != "text" {
		t.Errorf("%v", got)
	}
	for _, entry := range c.Entries() {
		if strings.Contains(entry.Value, "from-") {
			t.Errorf("%s is shown as %s", entry.Key, entry.Value)
		}
	}
	for text, want := range map[string]string{
		"{env: NOT_SET_ANYWHERE}": "NOT_SET_ANYWHERE", "{env: A, file: b}": "one of env, file", "{}": "one of env, file",
		"{file: none}": "none", "{a: b}": "unknown key",
	} {
		_, err := Load(Source{Dir: dir, Default: []byte("plugin: {github: {config: {api_key: " + text + "}}}\n")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPluginNew goes the way that the command prints, without a network.
func TestPluginNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [hi-there/dist]\n"))
	invoke(t, dir, "plugin", "new", "hi-there", "--lang", "go").want(t, exitOK,
		"cd hi-there", "go test ./...", "hako plugin build .", "hako plugin approve hi-there --plugins dist",
		`hako call hi_there '{"name":"Aki"}' --plugins dist`)
	plugin := filepath.Join(dir, "hi-there")
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = plugin
		command.Env = append(os.Environ(), "GOFLAGS=-mod=vendor", "GOPROXY=off", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	invoke(t, plugin, "plugin", "build", ".").want(t, exitOK, filepath.Join(plugin, "dist", "hi-there.wasm"))
	if o := invoke(t, plugin, "plugin", "check", "."); o.code != exitOK ||
		!strings.Contains(o.stdout, "nothing to object to") {
		t.Errorf("a new plugin is not beyond reproach: %s", o)
	}
	invoke(t, plugin, "plugin", "approve", "hi-there", "--plugins", "dist", "--yes").want(t, exitOK)
	invoke(t, plugin, "call", "hi_there", `{"name":"Aki"}`, "--plugins", "dist").want(t, exitOK, "Hello, Aki!")
	t.Run("again", func(t *testing.T) {
		invoke(t, dir, "plugin", "new", "hi-there").want(t, exitUsage, "exists and is not empty")
	})
}

func TestPluginNewFails(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "plugin", "new", "Hello").want(t, exitUsage, `"Hello" is no name for a plugin`)
	invoke(t, t.TempDir(), "plugin", "new", "hello", "--lang", "cobol").want(t, exitUsage, `no new plugin in "cobol": --lang go, --lang js`)
}

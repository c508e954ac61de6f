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
	invoke(t, t.TempDir(), "plugin", "new", "hello", "--lang", "rust").want(t, exitUsage, `no PDK for "rust" yet`)
}

// TestGoVersion holds the version that new plugins need against this module's.
func TestGoVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngo "+goVersion+"\n") {
		t.Errorf("go.mod does not say go %s", goVersion)
	}
}

func TestPDKVersion(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"v1.2.3": "v1.2.3", "1.2.3-rc.1": "v1.2.3-rc.1", "devel": "v0.0.0", "ab12cd3": "v0.0.0", "v1.2": "v0.0.0",
	} {
		if got := pdkVersion(program); got != want {
			t.Errorf("%s: got %s, want %s", program, got, want)
		}
	}
}

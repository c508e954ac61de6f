package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/internal/wholefile"
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
		!strings.Contains(o.stdout, "no problems found") {
		t.Errorf("a new plugin is not beyond reproach: %s", o)
	}
	invoke(t, plugin, "plugin", "approve", "hi-there", "--plugins", "dist", "--yes").want(t, exitOK)
	invoke(t, plugin, "call", "hi_there", `{"name":"Aki"}`, "--plugins", "dist").want(t, exitOK, "Hello, Aki!")
	t.Run("again", func(t *testing.T) {
		invoke(t, dir, "plugin", "new", "hi-there").want(t, exitUsage, "exists and is not empty")
	})
}

// TestPluginNewIgnoresState: in the folder of a new plugin, git ignores what hako writes there, but not the consents, which
// people review.
func TestPluginNewIgnoresState(t *testing.T) {
	t.Parallel()
	git := testprogram.Find(t, "git")
	for _, language := range pluginfile.Languages() {
		dir := filepath.Join(t.TempDir(), "hi")
		invoke(t, filepath.Dir(dir), "plugin", "new", "hi", "--lang", language).want(t, exitOK)
		untracked := func() string {
			command := exec.CommandContext(t.Context(), git, "status", "--porcelain", "--untracked-files=all")
			command.Dir = dir
			command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+dir)
			output, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			return string(output)
		}
		if output, err := exec.CommandContext(t.Context(), git, "init", "--quiet", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		before := untracked()
		put(t, filepath.Join(dir, "dist", "probe.wasm"), probePlugin(t))
		put(t, filepath.Join(dir, wholefile.Prefix+"1234"), nil)
		invoke(t, dir, "plugin", "approve", "probe", "--plugins", "dist", "--yes").want(t, exitOK)
		invoke(t, dir, "call", "probe_echo", `{"text":"x"}`, "--plugins", "dist").want(t, exitOK)
		if _, err := os.Stat(filepath.Join(dir, "hako.store", "audit", "audit.key")); err != nil {
			t.Errorf("%s: %v", language, err)
		}
		after, consents := strings.Replace(untracked(), "?? hako.consents.yaml\n", "", 1), "hako.consents.yaml"
		if !strings.Contains(untracked(), consents) {
			t.Errorf("%s: %s is ignored", language, consents)
		}
		if after != before {
			t.Errorf("%s: not ignored:\n%s\nonly these are the author's:\n%s", language, after, before)
		}
	}
}

func TestPluginNewFails(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "plugin", "new", "Hello").want(t, exitUsage, `"Hello" is not a valid plugin name`)
	invoke(t, t.TempDir(), "plugin", "new", "hello", "--lang", "cobol").want(t, exitUsage, `unsupported language "cobol": --lang go, --lang rust`)
}

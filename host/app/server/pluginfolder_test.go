package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// testFolder returns a plugin folder in a new directory, and its configuration.
func testFolder(t *testing.T) (pluginFolder, *config.Config) {
	t.Helper()
	dir := t.TempDir()
	c := &config.Config{Plugins: []string{filepath.Join(dir, "plugins")}, Cache: filepath.Join(dir, "cache"),
		Store: filepath.Join(dir, "store"), Consents: filepath.Join(dir, "hako.consents.yaml"), MaxPluginSize: 1 << 20}
	if err := os.Mkdir(c.Plugins[0], 0o755); err != nil {
		t.Fatal(err)
	}
	return pluginFolder{func() *config.Config { return c }}, c
}

// place puts a version of the plugin greet into the folder.
func place(t *testing.T, f pluginFolder, version string) {
	t.Helper()
	wasm, err := wasmfile.Embed([]byte("\x00asm\x01\x00\x00\x00"), map[string][]byte{abi.ManifestSection: []byte(
		"name: greet\nversion: " + version + "\ndescription: Greets.\nlicense: MIT\n" +
			"tools: [{name: greet, description: Greets., inputSchema: {type: object}}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Read(wasm, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Place(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// locked returns the entry of greet, which must be that of the file in the folder.
func locked(t *testing.T, c *config.Config) lock.Plugin {
	t.Helper()
	entries, err := lock.Load(c.LockFile())
	wasm, missing := os.ReadFile(filepath.Join(c.Plugins[0], "greet.wasm"))
	if err = errors.Join(err, missing); err != nil {
		t.Fatal(err)
	}
	if e := entries["greet"]; e.Wasm != plugincopies.Digest(wasm) {
		t.Errorf("the entry is of version %s, and the file another one", e.Version)
	}
	return entries["greet"]
}

// wantError fails unless err has the text.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// TestPluginFolderRollback: the version before comes back, also where the file in the folder has vanished meanwhile.
// Without a version before, or without its copy, the error says so.
func TestPluginFolderRollback(t *testing.T) {
	t.Parallel()
	f, c := testFolder(t)
	place(t, f, "1.0.0")
	_, err := f.Previous(t.Context(), "greet")
	wantError(t, "no version before", err, "there is nothing to roll back to")
	_, err = f.Newer(t.Context(), "greet")
	wantError(t, "added from a file", err, "was added from a file")
	place(t, f, "2.0.0")
	before, err := f.Previous(t.Context(), "greet")
	if err != nil || before.Manifest.Version != "1.0.0" || !before.Exists {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := os.Remove(filepath.Join(c.Plugins[0], "greet.wasm")); err != nil {
		t.Fatal(err)
	}
	if err := before.Place(t.Context()); err != nil {
		t.Fatal(err)
	}
	entry := locked(t, c)
	if entry.Version != "1.0.0" || entry.Previous == nil || entry.Previous.Version != "2.0.0" {
		t.Errorf("%+v", entry)
	}
	if err := os.RemoveAll(c.Cache); err != nil {
		t.Fatal(err)
	}
	_, err = f.Previous(t.Context(), "greet")
	wantError(t, "no copy", err, "there is no copy of version 2.0.0")
}

// TestPluginFolderNames: a name from a request reaches no file outside of the folder.
func TestPluginFolderNames(t *testing.T) {
	t.Parallel()
	f, c := testFolder(t)
	place(t, f, "1.0.0")
	outside := filepath.Join(filepath.Dir(c.Plugins[0]), "other.wasm")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../other", `..\other`, "plugins/../greet", outside, "greet.wasm",
		"greet\x00", "Greet", "greet\n"} {
		if left, err := f.Remove(t.Context(), name); err == nil {
			t.Errorf("removed %q: %q", name, left)
		}
		if p, err := f.Previous(t.Context(), name); err == nil {
			t.Errorf("version of %q before: %+v", name, p)
		}
		if p, err := f.Newer(t.Context(), name); err == nil {
			t.Errorf("newer version of %q: %+v", name, p)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	locked(t, c)
}

// TestPluginFolderConcurrent: of concurrent removals one succeeds, and concurrent updates leave a file and its entry.
func TestPluginFolderConcurrent(t *testing.T) {
	t.Parallel()
	f, c := testFolder(t)
	place(t, f, "1.0.0")
	place(t, f, "2.0.0")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			p, err := f.Previous(t.Context(), "greet")
			if err == nil {
				err = p.Place(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if e := locked(t, c); e.Previous == nil || e.Previous.Wasm == e.Wasm {
		t.Errorf("%+v", e)
	}
	var removed atomic.Int32
	for range 8 {
		group.Go(func() {
			if left, err := f.Remove(t.Context(), "greet"); err != nil {
				wantError(t, "removed meanwhile", err, "there is no plugin greet to remove")
			} else if removed.Add(1); len(left) == 0 {
				t.Error("the copy is not named")
			}
		})
	}
	group.Wait()
	if n := removed.Load(); n != 1 {
		t.Errorf("%d removals", n)
	}
}

// TestPluginFolderUnwritable: a folder that cannot be changed is named, and the lock file stays as it is.
func TestPluginFolderUnwritable(t *testing.T) {
	t.Parallel()
	f, c := testFolder(t)
	if s := f.State(); s.Problem != nil || s.Dir != c.Plugins[0] {
		t.Errorf("%+v", s)
	}
	place(t, f, "1.0.0")
	place(t, f, "2.0.0")
	before, err := f.Previous(t.Context(), "greet")
	if err != nil {
		t.Fatal(err)
	}
	// A file in the folder's place refuses everybody; rights would not refuse root.
	err = errors.Join(os.RemoveAll(c.Plugins[0]), os.WriteFile(c.Plugins[0], nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "state", f.State().Problem, "cannot write to the plugin folder "+c.Plugins[0])
	if err := before.Place(t.Context()); err == nil {
		t.Error("placed")
	}
	if _, err := f.Remove(t.Context(), "greet"); err == nil {
		t.Error("removed")
	}
	entries, err := lock.Load(c.LockFile())
	if err != nil || entries["greet"].Version != "2.0.0" {
		t.Errorf("%+v, %v", entries, err)
	}
	c.Plugins = nil
	if err := f.State().Problem; !errors.Is(err, install.ErrNoFolder) {
		t.Error(err)
	}
}

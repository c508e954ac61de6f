package sandbox_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// filesPlugin loads the shipped files plugin with a mount.
func filesPlugin(t testing.TB, m grant.Mount) *sandbox.Plugin {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	mount, err := file.New(m)
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{
		Name:   "files",
		Wasm:   func() ([]byte, error) { return guesttest.Build(t, "plugins/files"), nil },
		Mounts: []*file.Mount{mount},
		Limits: manifest.Limits{Output: 8 << 20, Time: patience},
	})
	t.Cleanup(func() {
		for _, close := range []func() error{plugin.Close, mount.Close, engine.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return plugin
}

// callFiles calls a tool and returns its first text, and whether it failed.
func callFiles(t testing.TB, p *sandbox.Plugin, tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	data, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: tool,
		Arguments: data}})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	block := response.Content[0]
	return block.Text + string(block.Data), response.IsError
}

// TestMountErrorsReachTheCaller violates each rule of a mount through a real plugin and checks that the answer names
// the rule.
func TestMountErrorsReachTheCaller(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "secret")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(inside, "hidden"), 0o755),
		os.WriteFile(outside, []byte("outside"), 0o644),
		os.WriteFile(filepath.Join(inside, "hidden", "f"), []byte("hidden"), 0o644),
		os.WriteFile(filepath.Join(inside, "given"), []byte("given"), 0o644),
		os.WriteFile(filepath.Join(inside, "private"), []byte("private"), 0o600),
		os.Link(outside, filepath.Join(inside, "hard")),
		os.Symlink("../secret", filepath.Join(inside, "out")),
		os.Symlink("given", filepath.Join(inside, "in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	grantOf := grant.Mount{Name: "workspace", Path: inside, Write: true, Deny: []string{"hidden"}, Quota: 1000}
	readWrite := filesPlugin(t, grantOf)
	grantOf.Write = false
	readOnly := filesPlugin(t, grantOf)
	for _, c := range []struct { // in order: the list shows the files of earlier cases
		name      string
		plugin    *sandbox.Plugin
		tool      string
		arguments map[string]any
		want      string
		fails     bool
	}{
		{"read", readWrite, "file_read", map[string]any{"path": "given"}, "given", false},
		{"read by a link", readWrite, "file_read", map[string]any{"path": "in"}, "given", false},
		{"read by a link to outside", readWrite, "file_read", map[string]any{"path": "out"},
			"leads out of the workspace", true},
		{"read what is hidden", readWrite, "file_read", map[string]any{"path": "hidden/f"}, "no such file", true},
		{"list", readWrite, "file_list", map[string]any{}, "given (5)\nhard (7)\nin (link)\nout (link)\nprivate (7)\n",
			false},
		{"write beyond the quota", readWrite, "file_write",
			map[string]any{"path": "big", "content": strings.Repeat("x", 1000)}, "quota is used up", true},
		{"write what is hidden", readWrite, "file_write", map[string]any{"path": "hidden/g", "content": ""},
			"does not exist", true},
		{"replace a hard link", readWrite, "file_write", map[string]any{"path": "hard", "content": "own",
			"overwrite": true}, "Wrote 3 bytes", false},
		{"replace a private file", readWrite, "file_write", map[string]any{"path": "private", "content": "own",
			"overwrite": true}, "Wrote 3 bytes", false},
		{"write to a read-only mount", readOnly, "file_write", map[string]any{"path": "new", "content": ""},
			"read-only", true},
		{"delete on a read-only one", readOnly, "delete_file", map[string]any{"path": "given"}, "read-only", true},
		{"move on a read-only one", readOnly, "file_move", map[string]any{"from": "given", "to": "x"}, "read-only",
			true},
	} {
		got, failed := callFiles(t, c.plugin, c.tool, c.arguments)
		if !strings.Contains(got, c.want) || failed != c.fails {
			t.Errorf("%s: %q, error %v; want %q", c.name, got, failed, c.want)
		}
	}
	if content, err := os.ReadFile(outside); string(content) != "outside" {
		t.Errorf("outside holds %q, %v", content, err)
	}
	if info, err := os.Stat(filepath.Join(inside, "private")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private file is %v, %v", info.Mode(), err)
	}
}

// BenchmarkFileRead reads 1 MiB through the files plugin.
func BenchmarkFileRead(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"),
		[]byte(strings.Repeat("all work and no play makes a dull \"boy\"\n", 1<<20/40)), 0o644); err != nil {
		b.Fatal(err)
	}
	plugin := filesPlugin(b, grant.Mount{Name: "workspace", Path: dir, Write: true})
	if err := plugin.Prepare(b.Context()); err != nil { // calls before that are interpreted
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	for b.Loop() {
		if text, failed := callFiles(b, plugin, "file_read", map[string]any{"path": "f"}); failed {
			b.Fatal(text)
		}
	}
}

// TestPathsOutsideTheMounts checks that paths in no mount do not exist and that "/" lists the mounts.
func TestPathsOutsideTheMounts(t *testing.T) {
	t.Parallel()
	mount, err := file.New(grant.Mount{Name: "workspace", Path: t.TempDir(), Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.Close() })
	mounted := newPlugin(t, sandbox.Options{}, sandbox.Spec{Mounts: []*file.Mount{mount}})
	without := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	for _, c := range []struct {
		plugin           *sandbox.Plugin
		tool, path, want string
	}{
		{mounted, "read", "/etc/passwd", "No such file or directory"},
		{mounted, "read", "/workspace2/f", "No such file or directory"},
		{mounted, "read", "relative", "No such file or directory"},
		{mounted, "write", "/tmp/new", "Read-only file system"},
		{mounted, "write", "/workspace/new", "written"},
		{mounted, "list", "/*", "/workspace"},
		{without, "read", "/etc/passwd", "No such file or directory"},
		{without, "write", "/tmp/new", "Read-only file system"},
		{without, "list", "/*", ""},
	} {
		response, err := call(t, c.plugin, c.tool, map[string]string{"path": c.path, "content": "x"})
		if err != nil || !strings.Contains(response.Content[0].Text, c.want) || c.want == "" &&
			response.Content[0].Text != "" {
			t.Errorf("%s %s: %+v, %v; want %q", c.tool, c.path, response, err, c.want)
		}
	}
}

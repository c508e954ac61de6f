package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// tree makes a directory for each name that ends in "/", and files of the others, below dir.
func tree(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		put(t, path, []byte("needle in "+name+"\n"))
	}
}

// TestSeveralRoots calls the file tools over MCP where two directories are allowed besides the workspace: by the
// guest's paths and by the host's. It tries to reach what lies beside them.
func TestSeveralRoots(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir, home := t.TempDir(), must(filepath.EvalSymlinks(t.TempDir()))
	tree(t, dir, "workspace/", "workspace/w.md")
	tree(t, home, "a/docs/x/", "b/docs/", "a/docs-secret/", "a/docs/a.md", "a/docs/x/deep.md", "b/docs/b.md",
		"a/docs-secret/s.md")
	first, second := filepath.Join(home, "a", "docs"), filepath.Join(home, "b", "docs")
	for name, target := range map[string]string{
		filepath.Join(first, "to-second"): second,
		filepath.Join(first, "to-secret"): filepath.Join(home, "a", "docs-secret"),
		filepath.Join(first, "up"):        "../..",
	} {
		if err := os.Symlink(target, name); err != nil {
			testprogram.Missing(t, err.Error())
		}
	}
	s := serve(t, dir, "--allow-path", first, "--allow-path", second, "--allow-path", first)
	call := func(tool string, arguments map[string]any) string {
		t.Helper()
		text := string(must(json.Marshal(arguments)))
		_, answer := s.rpc(t, "", "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s,`, tool, text))
		return answer
	}
	for _, c := range []struct {
		name, tool, path string
		more             map[string]any
		want             []string
	}{
		{"list everything", "file_list", "", nil, []string{`"path":"/docs"`, `"path":"/docs-2"`, `"path":"w.md"`}},
		{"list by the host's path", "file_list", first, nil, []string{`"path":"/docs/a.md"`}},
		{"list by the guest's path", "file_list", "/docs-2", nil, []string{`"path":"/docs-2/b.md"`}},
		{"read in the workspace", "file_read", "w.md", nil, []string{"needle in workspace/w.md"}},
		{"read in the workspace by the host's path", "file_read", filepath.Join(dir, "workspace", "w.md"), nil,
			[]string{"needle in workspace/w.md"}},
		{"read in the first", "file_read", filepath.Join(first, "x", "deep.md"), nil,
			[]string{"needle in a/docs/x/deep.md"}},
		{"read in the second", "file_read", "/docs-2/b.md", nil, []string{"needle in b/docs/b.md"}},
		{"stat", "file_stat", filepath.Join(second, "b.md"), nil, []string{`"path":"/docs-2/b.md"`, `"exists":true`}},
		{"write", "file_write", filepath.Join(second, "new", "n.md"),
			map[string]any{"content": "new", "createDirectories": true}, []string{`"path":"/docs-2/new/n.md"`}},
		{"search everything", "file_search", "", map[string]any{"text": "needle"},
			[]string{"/docs/a.md", "/docs/x/deep.md", "/docs-2/b.md", `"path":"w.md"`, `"count":4`}},
		{"search one", "file_search", second, map[string]any{"text": "needle"}, []string{"/docs-2/b.md", `"count":1`}},

		{"beside, with the same beginning", "file_read", filepath.Join(home, "a", "docs-secret", "s.md"), nil,
			[]string{`"isError":true`, "/docs (" + first + ")", "/docs-2 (" + second + ")", "/workspace"}},
		{"beside, through ..", "file_read", first + "/../docs-secret/s.md", nil,
			[]string{`"isError":true`, "none of the allowed"}},
		{"beside, by the guest's path", "file_read", "/docs/../docs-2/b.md", nil,
			[]string{`"isError":true`, "leads out"}},
		{"elsewhere", "file_read", "/etc/passwd", nil, []string{`"isError":true`, "none of the allowed"}},
		{"through a link to the other root", "file_read", first + "/to-second/b.md", nil,
			[]string{`"isError":true`, "symbolic link"}},
		{"through a link to outside", "file_read", first + "/to-secret/s.md", nil,
			[]string{`"isError":true`, "symbolic link"}},
		{"through a link upwards", "file_list", "/docs/up", nil, []string{`"isError":true`, "symbolic link"}},
		{"write outside", "file_write", filepath.Join(home, "a", "n.md"), map[string]any{"content": "x"},
			[]string{`"isError":true`, "none of the allowed"}},
		{"write through a link", "file_write", first + "/to-second/n.md", map[string]any{"content": "x"},
			[]string{`"isError":true`, "symbolic link"}},
		{"delete a root", "delete_file", second, nil, []string{`"isError":true`, "allowed directory itself"}},
	} {
		arguments := map[string]any{}
		for key, value := range c.more {
			arguments[key] = value
		}
		if c.path != "" {
			arguments["path"] = c.path
		}
		answer := call(c.tool, arguments)
		for _, want := range c.want {
			if !strings.Contains(answer, want) {
				t.Errorf("%s: %s, want %s", c.name, answer, want)
			}
		}
		if strings.Contains(answer, "needle in a/docs-secret") {
			t.Errorf("%s shows what is outside: %s", c.name, answer)
		}
	}
	if text := string(must(os.ReadFile(filepath.Join(second, "new", "n.md")))); text != "new" {
		t.Errorf("written: %q", text)
	}
	if answer := call("file_move", map[string]any{"from": first + "/a.md", "to": "moved.md"}); !strings.Contains(answer,
		"different directories") {
		t.Errorf("a move between roots: %s", answer)
	}
	_, s2 := s.stop(), serve(t, dir)
	if _, answer := s2.rpc(t, "", "tools/call", "file_read",
		fmt.Sprintf(`"name":"file_read","arguments":{"path":%q},`,
			filepath.Join(first, "a.md"))); !strings.Contains(answer, "The one mount is /workspace") {
		t.Errorf("without --allow-path: %s", answer)
	}
}

// TestAllowPaths is about the setting: what it refuses, that grants show every root, that hako's own files are hidden
// in one, and that a read-only consent holds for roots too.
func TestAllowPaths(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	tree(t, dir, "docs/", "ws/", "docs/a.md", "ws/w.md")
	put(t, filepath.Join(dir, "hako.yaml"),
		[]byte("shipped: {enabled: true, mounts: {workspace: ws}}\nallowPaths: [docs]\n"))
	docs := filepath.Join(dir, "docs")
	invoke(t, dir, "call", "file_read", `{"path":"`+filepath.ToSlash(docs)+`/a.md"}`).want(t, exitOK,
		"needle in docs/a.md")
	invoke(t, dir, "plugin", "inspect", "files").want(t, exitOK, "may read, change and delete what is in "+docs)
	for _, c := range []struct{ path, want string }{
		{"missing", "name a directory that exists"}, {"docs/a.md", "it is a file"},
		{filepath.VolumeName(dir) + string(filepath.Separator), "whole file system"},
		{"hako.store", "hako keeps its own files there"},
	} {
		tree(t, dir, "hako.store/")
		invoke(t, dir, "call", "file_list", "--allow-path", c.path).want(t, exitUsage, c.want)
	}
	invoke(t, dir, "call", "file_read", `{"path":"`+filepath.ToSlash(dir)+`/docs/a.md"}`, "--allow-path", dir).want(t,
		exitOK, "needle in docs/a.md")
	for own, want := range map[string]string{"hako.yaml": "out of reach", ".env": "out of reach",
		"hako.policy.yaml": "choose another name, or ask the operator", "hako.store/x": "does not exist"} {
		arguments := map[string]any{"path": filepath.Join(dir, own), "content": "x", "overwrite": true}
		text := string(must(json.Marshal(arguments)))
		invoke(t, dir, "call", "file_write", text, "--allow-path", dir).want(t, exitFailed, want)
		arguments["createDirectories"] = true
		text = string(must(json.Marshal(arguments)))
		invoke(t, dir, "call", "file_write", text, "--allow-path", dir).want(t, exitFailed, "out of reach")
	}

	invoke(t, dir, "plugin", "approve", "files", "--mount", "workspace="+filepath.Join(dir, "ws")+":ro", "--yes").
		want(t, exitOK, "also in the folders that you allow", "may read what is in "+docs)
	write := string(must(json.Marshal(map[string]any{"path": filepath.Join(docs, "n.md"), "content": "x"})))
	invoke(t, dir, "call", "file_write", write).want(t, exitFailed, "read-only")
	invoke(t, dir, "mcp-config", "claude-desktop", "--allow-path", "docs").want(t, exitOK, `"--allow-path"`,
		string(must(json.Marshal(docs))))
}

// TestOwnFilesInTheWorkspace: in a workspace that is hako's own directory, hako's files are hidden from the file tools.
func TestOwnFilesInTheWorkspace(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	tree(t, dir, "notes.md", ".env", "hako.policy.yaml", "hako.policy.proposed.yaml")
	put(t, filepath.Join(dir, ".env"), []byte("# needle\n"))
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("version: 1\n"))
	put(t, filepath.Join(dir, "hako.yaml"), []byte("shipped: {enabled: true, mounts: {workspace: .}}\n"))
	check := func(t *testing.T) {
		t.Helper()
		invoke(t, dir, "call", "file_read", `{"path":"notes.md"}`).want(t, exitOK, "needle in notes.md")
		for _, own := range []string{"hako.yaml", ".env", "hako.policy.yaml", "hako.policy.proposed.yaml"} {
			invoke(t, dir, "call", "file_read", `{"path":"`+own+`"}`).want(t, exitFailed, "there is no such file")
		}
		if o := invoke(t, dir, "call", "file_list"); strings.Contains(o.stdout, "hako.") ||
			strings.Contains(o.stdout, ".env") {
			t.Errorf("hako's own files are listed: %s", o)
		}
	}
	check(t)
	invoke(t, dir, "plugin", "approve", "files", "--mount", "workspace=.", "--yes").want(t, exitOK, "hako.yaml")
	check(t)
}

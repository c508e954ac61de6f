package grant_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// TestRoots grants roots: their names, their rules, what they hide, and where the plugin is told that they are.
func TestRoots(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"ws", "a/docs/own", "b/docs", "c/workspace"} {
		if err := os.MkdirAll(path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(path("b/docs"), path("link")); err != nil {
		testprogram.Missing(t, err.Error())
	}
	m := &manifest.Manifest{Name: "files"}
	m.Permissions.Files = []manifest.FilePermission{{Mount: "workspace", Write: true, Roots: true}}
	consent := &grant.Consent{Mounts: map[string]grant.Mount{"workspace": {Path: path("ws"), Write: true,
		Deny: []string{"**/.git/**"}, Quota: 7}}}
	roots := grant.Roots{
		Dirs: []string{path("a/docs"), path("link"), path("c/workspace"), path("b/docs"), path("ws"),
			path("a/docs/")},
		Hidden: []string{path("a/docs/own"), path("a/docs/x[1]/not there"), path("elsewhere")},
	}
	g, err := grant.Resolve(m, consent, nil, roots)
	if err != nil {
		t.Fatal(err)
	}
	deny := []string{"**/.git/**"}
	want := []grant.Mount{
		{Name: "workspace", Path: path("ws"), Write: true, Deny: deny, Quota: 7},
		{Name: "docs", Path: path("a/docs"), Write: true, Deny: []string{"**/.git/**", "own", `x\[1\]/not there`,
			"**/.hako-new-*"}, Quota: 7},
		{Name: "link", Path: path("link"), Write: true, Deny: deny, Quota: 7},
		{Name: "workspace-2", Path: path("c/workspace"), Write: true, Deny: deny, Quota: 7},
	}
	if !reflect.DeepEqual(g.Mounts, want) {
		t.Errorf("mounts = %+v, want %+v", g.Mounts, want)
	}
	data, err := g.RootPaths(m)
	var paths map[string]string
	if err != nil || json.Unmarshal(data, &paths) != nil || !reflect.DeepEqual(paths, map[string]string{
		path("ws"): "/workspace", path("a/docs"): "/docs", path("link"): "/link", path("b/docs"): "/link",
		path("c/workspace"): "/workspace-2",
	}) {
		t.Errorf("paths = %s, %v", data, err)
	}

	m.Permissions.Files[0].Roots = false
	g, err = grant.Resolve(m, consent, nil, roots)
	if data, _ := g.RootPaths(m); err != nil || len(g.Mounts) != 1 || data != nil {
		t.Errorf("a plugin that asks for no roots gets %+v, %s, %v", g.Mounts, data, err)
	}
}

// TestHiddenLinks: all names on the way to a hidden file are hidden: who replaces a link replaces the file.
func TestHiddenLinks(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"conf": "hop", "hop": filepath.Join(dir, "real"), "real/own": "own-1",
		"loop": "loop", "up": "../" + filepath.Base(dir),
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			testprogram.Missing(t, err.Error())
		}
	}
	m := &manifest.Manifest{Name: "files"}
	m.Permissions.Files = []manifest.FilePermission{{Mount: "workspace"}}
	consent := &grant.Consent{Mounts: map[string]grant.Mount{"workspace": {Path: dir}}}
	for hidden, want := range map[string][]string{
		"conf/own": {"conf/own", "hop/own", "real/own", "real/own-1"},
		"up/x":     {"up/x", "x"},
		"loop/x":   {"loop/x"},
	} {
		roots := grant.Roots{Hidden: []string{filepath.Join(dir, filepath.FromSlash(hidden))}}
		g, err := grant.Resolve(m, consent, nil, roots)
		if want = append(want, "**/.hako-new-*"); err != nil || !slices.Equal(g.Mounts[0].Deny, want) {
			t.Errorf("%s: deny %+v, %v, want %q", hidden, g.Mounts, err, want)
		}
	}
}

// TestHiddenFolder: a mount is no hidden directory, and none in one.
func TestHiddenFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &manifest.Manifest{Name: "files"}
	m.Permissions.Files = []manifest.FilePermission{{Mount: "workspace"}}
	for _, path := range []string{filepath.Join(dir, "store"), filepath.Join(dir, "store", "audit")} {
		consent := &grant.Consent{Mounts: map[string]grant.Mount{"workspace": {Path: path}}}
		_, err := grant.Resolve(m, consent, nil, grant.Roots{Hidden: []string{filepath.Join(dir, "store")}})
		if list := grant.ChoiceErrors(err); len(list) != 1 || list[0].Field != "mounts.workspace.dir" ||
			!strings.Contains(list[0].Error(), "hako keeps its own files in "+path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestRootsAreAsked: roots are a permission of their own, which a consent without them does not cover.
func TestRootsAreAsked(t *testing.T) {
	t.Parallel()
	permissions := func(roots bool) manifest.Permissions {
		return manifest.Permissions{Files: []manifest.FilePermission{{Mount: "workspace", Write: true, Roots: roots}}}
	}
	if grant.Digest(permissions(true)) == grant.Digest(permissions(false)) {
		t.Error("the digest is the same with roots and without")
	}
	for _, language := range []string{"en", "ja"} {
		more := grant.Additions(permissions(false), permissions(true), language)
		if len(more) != 1 || !strings.Contains(more[0], "--allow-path") {
			t.Errorf("additions: %q", more)
		}
		if text := grant.Explain(permissions(true), language); !strings.Contains(text[0], "--allow-path") {
			t.Errorf("permissions: %q", text)
		}
	}
	if less := grant.Additions(permissions(true), permissions(false), "en"); len(less) != 0 {
		t.Errorf("without roots it asks for more: %q", less)
	}
}

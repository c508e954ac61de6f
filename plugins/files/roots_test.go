package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

// TestRootOf resolves paths of callers where three directories are allowed, in the notations of several systems.
func TestRootOf(t *testing.T) {
	roots := map[string]string{
		"/srv/ws": "/workspace", "/home/mori/docs": "/docs", "/home/mori/docs/inner": "/inner", "/data/docs": "/docs-2",
		"/private/data/docs": "/docs-2", `C:\Users\Mori\docs`: "/docs-3",
	}
	ctx := pdktest.Context(t, pdktest.Options{Roots: roots})
	for given, want := range map[string]string{
		"a.md":                              "a.md",
		"/workspace/a.md":                   "a.md",
		"/srv/ws/a.md":                      "a.md",
		"/srv/ws":                           ".",
		"/docs":                             "/docs",
		"/docs/x/../a.md":                   "/docs/a.md",
		"/docs-2/a.md":                      "/docs-2/a.md",
		"/home/mori/docs/a.md":              "/docs/a.md",
		"/home/mori/docs/":                  "/docs",
		"/home/mori/docs/../docs/./x//a.md": "/docs/x/a.md",
		"/home/mori/docs/inner/a.md":        "/inner/a.md",
		"/home/mori/docs/inner2/a.md":       "/docs/inner2/a.md",
		"/data/docs/a.md":                   "/docs-2/a.md",
		"/private/data/docs/a.md":           "/docs-2/a.md",
		`C:\Users\Mori\docs\x\a.md`:         "/docs-3/x/a.md",
		`c:/users/mori/DOCS/A.md`:           "/docs-3/A.md",
		"/home/mori/docs-secret/a.md":       "",
		"/home/mori/docs/../a.md":           "",
		"/home/mori/docs/inner/../../a.md":  "",
		"/home/mori":                        "",
		"/home/MORI/docs/a.md":              "",
		"/docs/../workspace/a.md":           "",
		"/docs-20/a.md":                     "",
		"../a.md":                           "",
		"/":                                 "",
		"/etc/passwd":                       "",
		`C:\Users\Mori\docs2\a.md`:          "",
		`C:\Users\Mori\docs\..\a.md`:        "",
		`/docs/x\a.md`:                      "",
		"~/docs/a.md":                       "",
	} {
		got, err := resolve(ctx, given)
		if got.path != want || (err != nil) != (want == "") {
			t.Errorf("%s: %+v, %v, want %q", given, got, err, want)
		}
	}
	_, err := resolve(ctx, "/home/mori/docs-secret/a.md")
	const names = `/docs (/home/mori/docs), /docs-2 (/data/docs), /docs-3 (C:\Users\Mori\docs), /inner (/home/mori/docs/inner), /workspace:`
	if err == nil || !strings.Contains(err.Error(), names) || strings.Contains(err.Error(), "/srv/ws") {
		t.Errorf("outside: %v, want %s", err, names)
	}
}

// TestSeveralRoots lists and searches all roots where no path is given, page by page, and keeps moves within one.
func TestSeveralRoots(t *testing.T) {
	workspace(t, map[string]string{"a.md": "needle in the workspace"})
	other := filepath.ToSlash(t.TempDir())
	must(t, os.MkdirAll(filepath.Join(other, "x"), 0o755))
	must(t, os.WriteFile(filepath.Join(other, "x", "b.md"), []byte("needle elsewhere"), 0o644))
	roots := map[string]string{"/srv/ws": "/workspace", "/home/mori/docs": other}
	tool := func(name string, in args) (paths []string, text string) {
		t.Helper()
		response := pdktest.CallTool(t, name, in, pdktest.Options{Roots: roots})
		var out struct {
			Entries, Matches []struct{ Path string }
		}
		if len(response.StructuredContent) > 0 {
			must(t, json.Unmarshal(response.StructuredContent, &out))
		}
		for _, e := range append(out.Entries, out.Matches...) {
			paths = append(paths, strings.ReplaceAll(e.Path, other, "/docs"))
		}
		return paths, response.Content[0].Text
	}
	for _, c := range []struct {
		tool string
		in   args
		want []string
	}{
		{"file_list", args{}, []string{"/docs", "a.md"}},
		{"file_list", args{"depth": 3}, []string{"/docs", "/docs/x", "/docs/x/b.md", "a.md"}},
		{"file_list", args{"depth": 3, "limit": 2}, []string{"/docs", "/docs/x"}},
		{"file_list", args{"depth": 3, "limit": 2, "offset": 2}, []string{"/docs/x/b.md", "a.md"}},
		{"file_list", args{"path": "."}, []string{"a.md"}},
		{"file_list", args{"path": "/home/mori/docs/x"}, []string{"/docs/x/b.md"}},
		{"file_search", args{"text": "needle"}, []string{"/docs/x/b.md", "a.md"}},
		{"file_search", args{"name": "x/*.md"}, []string{"/docs/x/b.md"}},
		{"file_search", args{"text": "needle", "limit": 1}, []string{"/docs/x/b.md"}},
		{"file_search", args{"text": "needle", "path": "/srv/ws"}, []string{"a.md"}},
	} {
		if got, text := tool(c.tool, c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s(%v): %q, want %q: %s", c.tool, c.in, got, c.want, text)
		}
	}
	if _, text := tool("file_read", args{"path": "x/b.md"}); !strings.Contains(text, "x/b.md is not in the workspace") ||
		!strings.Contains(text, other+"/x/b.md") {
		t.Errorf("a path in another root: %s", text)
	}
	for want, in := range map[string]args{
		"different directories":    {"from": "a.md", "to": other + "/a.md"},
		"allowed directory itself": {"from": other, "to": "b"},
	} {
		if _, text := tool("file_move", in); !strings.Contains(text, want) {
			t.Errorf("file_move(%v): %s, want %q", in, text, want)
		}
	}
}

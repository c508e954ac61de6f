package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

func TestSearch(t *testing.T) {
	long := strings.Repeat("前", 200) + "needle" + strings.Repeat("後", 200)
	workspace(t, map[string]string{
		"a.md": "first\nSecond Needle\nthird needle needle\n", "docs/b.md": "nothing", "docs/deep/c.txt": "needle\r\n",
		"long.txt": long,
		"sjis.txt": "\x93\xfa\x96\x7b\x8c\xea needle", "binary.txt": "needle\x00", "needle.bin": "",
		"jp/メモ.txt": "日本語の針",
	})
	for _, c := range []struct {
		in   args
		want []string
	}{
		{args{"name": "*.md"}, []string{"a.md", "docs/b.md"}},
		{args{"name": "docs/*.md"}, []string{"docs/b.md"}},
		{args{"name": "docs/**/*"}, []string{"docs/b.md", "docs/deep", "docs/deep/c.txt"}},
		{args{"name": "needle*"}, []string{"needle.bin"}},
		{args{"name": "メモ*"}, []string{"jp/メモ.txt"}},
		{args{"name": "c.txt", "path": "docs"}, []string{"docs/deep/c.txt"}},
		{args{"name": "deep/*", "path": "docs"}, []string{"docs/deep/c.txt"}},
		{args{"text": "needle", "name": "*.md"}, []string{"a.md:3 third needle needle"}},
		{args{"text": "NEEDLE", "name": "a.*", "ignoreCase": true},
			[]string{"a.md:2 Second Needle", "a.md:3 third needle needle"}},
		{args{"text": "needle", "path": "docs"}, []string{"docs/deep/c.txt:1 needle"}},
		{args{"text": "針"}, []string{"jp/メモ.txt:1 日本語の針"}},
		{args{"text": "日本語 n"}, []string{"sjis.txt:1 日本語 needle"}},
		{args{"text": "nowhere"}, nil},
	} {
		var found []string
		got := result[searchResult](t, "file_search", c.in)
		for _, m := range got.Matches {
			if m.Line > 0 {
				m.Path += fmt.Sprintf(":%d %s", m.Line, m.Text)
			}
			found = append(found, m.Path)
		}
		if !slices.Equal(found, c.want) || got.Truncated {
			t.Errorf("file_search(%v): %q", c.in, found)
		}
	}
	got := result[searchResult](t, "file_search", args{"text": "needle", "name": "long.txt"})
	if m := got.Matches[0]; len(m.Text) > maxExcerpt+10 || !strings.Contains(m.Text, "needle") ||
		!strings.HasPrefix(m.Text, "…") {
		t.Errorf("a long line: %q", m.Text)
	}
	if got := result[searchResult](t, "file_search", args{"name": "*", "limit": 2}); len(got.Matches) != 2 ||
		!got.Truncated {
		t.Errorf("with a limit: %+v", got)
	}
	if got := result[searchResult](t, "file_search",
		args{"name": "*", "limit": 2, "offset": 1}); len(got.Matches) != 2 || got.Count != 2 || got.NextOffset == nil ||
		*got.NextOffset != 3 {
		t.Errorf("with an offset: %+v", got)
	}
	left := result[searchResult](t, "file_search", args{"text": "needle"})
	if left.LeftOut != (leftOut{NotText: 1}) {
		t.Errorf("left out: %+v", left.LeftOut)
	}
	if text := callIn(t, "en", "file_search", args{"text": "needle"}).Content[0].Text; !strings.Contains(text,
		"[not searched: 1 files that are not text") {
		t.Errorf("left out: %s", text)
	}
	workspace(t, map[string]string{"many": strings.Repeat("x\n", 100), "other": "x"})
	many := result[searchResult](t, "file_search", args{"text": "x"})
	if many.Count != maxFileLines+1 || many.LeftOut.Lines != 100-maxFileLines || many.Matches[maxFileLines].Path != "other" {
		t.Errorf("of many lines: %+v", many)
	}
	if all := result[searchResult](t, "file_search", args{"text": "x", "limit": 200}); all.Count != 101 || all.LeftOut.Lines > 0 {
		t.Errorf("with a limit: %d", all.Count)
	}
	workspace(t, map[string]string{"a.md": ""})
	refused(t, "file_search", args{}, "nothing to search for")
	refused(t, "file_search", args{"name": "[a"}, "malformed")
	refused(t, "file_search", args{"name": "*", "path": "a.md"}, "not a directory")
	refused(t, "file_search", args{"name": "*", "path": "/etc"}, "host")
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "x/y/a.go", true},
		{"./*.go", "a.go", true},
		{"x/*.go", "x/y/a.go", false},
		{"x/**/a.go", "x/a.go", true},
		{"x/**/a.go", "x/y/z/a.go", true},
		{"**/y/**", "x/y/z", true},
		{"**/y/**", "x/z", false},
		{"**", "x/y", true},
		{"x/**", "x", true},
		{"**/a/**/b", "a/x/a/y/b", true},
		{"**/a/**/b", "a/x/b/y", false},
		{"[ab]?.txt", "d/bc.txt", true},
	} {
		g, err := parseGlob(c.pattern)
		must(t, err)
		if got := g.match(c.name); got != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.name, got)
		}
	}
}

// FuzzGlob checks that no pattern takes long, and that what a path matches itself.
func FuzzGlob(f *testing.F) {
	f.Add("**/a/**/b", "a/a/a/b")
	f.Add("[a-", "x")
	f.Add("**/**/**/**/**/x", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a")
	f.Add("./a", "././/")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if g, err := parseGlob(pattern); err == nil {
			g.match(name)
		}
		if strings.ContainsAny(name, `*?[\`) || strings.HasPrefix(name, "./") {
			return
		}
		if g, err := parseGlob(name); err != nil || !g.match(name) {
			t.Errorf("%q does not match itself: %v", name, err)
		}
	})
}

// FuzzPath checks that a path is refused or stays in one of the mounts.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "../a", "/workspace/../a", "a/../../b", "C:a", "/workspace", "~", `a\b`, "a\x00",
		"/srv/docs/../a", "/docs/../../a", `D:\x\..\..\a`} {
		f.Add(seed)
	}
	roots := map[string]string{"/srv/ws": "/workspace", "/srv/docs": "/docs", `D:\x`: "/x"}
	f.Fuzz(func(t *testing.T, given string) {
		at, err := resolve(pdktest.Context(t, pdktest.Options{Roots: roots}), given)
		inside := slices.ContainsFunc([]string{workspaceDir, "/docs", "/x"}, func(root string) bool {
			return at.full == root || strings.HasPrefix(at.full, root+"/")
		})
		if rel := at.path; err == nil && (!inside || strings.HasPrefix(rel, "..") && (rel == ".." || rel[2] == '/')) {
			t.Errorf("%q is %q", given, at.full)
		}
	})
}

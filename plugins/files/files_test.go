package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// workspace makes a directory with files the root of the tools. Tests that use it cannot run in parallel.
func workspace(t *testing.T, files map[string]string) string {
	t.Helper()
	old := workspaceDir
	t.Cleanup(func() { workspaceDir = old })
	workspaceDir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(workspaceDir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return workspaceDir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type args map[string]any

// outputs are the tools' output schemas, input their input schemas.
var shipped = func() *manifest.Manifest {
	data, err := os.ReadFile("../../manifests/files.yaml")
	if err != nil {
		panic(err)
	}
	m, err := manifest.Parse(data)
	if err != nil {
		panic(err)
	}
	return m
}()

// call calls a tool as the host does: arguments and result must match the schemas of the shipped manifest.
func call(t *testing.T, tool string, in args) *abi.Response {
	t.Helper()
	return callIn(t, "en", tool, in)
}

func callIn(t *testing.T, locale, tool string, in args) *abi.Response {
	t.Helper()
	i := slices.IndexFunc(shipped.Tools, func(x manifest.Tool) bool { return x.Name == tool })
	data, err := json.Marshal(in)
	must(t, err)
	if err := shipped.Tools[i].Input().Validate(data); err != nil {
		t.Fatalf("%s: arguments: %v", tool, err)
	}
	response := pdktest.CallTool(t, tool, in, pdktest.Options{Locale: locale})
	if response.IsError {
		return response
	}
	if err := shipped.Tools[i].Output().Validate(response.StructuredContent); err != nil {
		t.Errorf("%s: result: %v", tool, err)
	}
	return response
}

// result calls a tool that must succeed and decodes its structured content.
func result[T any](t *testing.T, tool string, in args) (out T) {
	t.Helper()
	response := call(t, tool, in)
	if response.IsError {
		t.Fatalf("%s(%v): %s", tool, in, response.Content[0].Text)
	}
	must(t, json.Unmarshal(response.StructuredContent, &out))
	return out
}

// refused calls a tool that must fail with a text that holds all of the words.
func refused(t *testing.T, tool string, in args, words ...string) {
	t.Helper()
	response := call(t, tool, in)
	if !response.IsError {
		t.Errorf("%s(%v) succeeds with %s", tool, in, response.StructuredContent)
		return
	}
	for _, w := range words {
		if !strings.Contains(response.Content[0].Text, w) {
			t.Errorf("%s(%v): %q, want %q in it", tool, in, response.Content[0].Text, w)
		}
	}
	if strings.Contains(response.Content[0].Text, workspaceDir) {
		t.Errorf("%s(%v): %q tells the host's path", tool, in, response.Content[0].Text)
	}
	if ja := callIn(t, "ja-JP", tool, in).Content[0].Text; ja == response.Content[0].Text ||
		strings.Contains(ja, "%!") {
		t.Errorf("%s(%v): %q is not Japanese", tool, in, ja)
	}
}

func TestManifestOffersTheHandlers(t *testing.T) {
	var offered []string
	for _, x := range shipped.Tools {
		offered = append(offered, x.Name)
		for _, text := range []manifest.Text{x.Title, x.Description} {
			if languages := slices.Sorted(maps.Keys(text)); !slices.Equal(languages, []string{"en", "ja"}) {
				t.Errorf("%s has texts in %v", x.Name, languages)
			}
		}
	}
	want := []string{"delete_file", "file_list", "file_move", "file_read", "file_search", "file_stat", "file_write"}
	if slices.Sort(offered); !slices.Equal(offered, want) {
		t.Errorf("the manifest offers %v", offered)
	}
}

func TestPaths(t *testing.T) {
	workspace(t, map[string]string{"a/b.txt": "b"})
	for _, path := range []string{"a/b.txt", "./a/b.txt", "/workspace/a/b.txt", "a/../a//b.txt", "/workspace/./a/b.txt"} {
		if got := result[readResult](t, "file_read", args{"path": path}); got.Content != "b" {
			t.Errorf("%s holds %q", path, got.Content)
		}
	}
	for path, words := range map[string][]string{
		"":                       {"empty"},
		"/etc/passwd":            {"/workspace", "host"},
		"/workspaces/a":          {"/workspace", "host"},
		`C:\Users\aki\a.txt`:     {"/workspace", "host"},
		"c:/Users/aki/a.txt":     {"/workspace", "host"},
		`\\server\share\a.txt`:   {"/workspace", "host"},
		"~/a.txt":                {"/workspace", "host"},
		"file:///etc/passwd":     {"/workspace", "host"},
		`a\b.txt`:                {`"/"`},
		"../a":                   {"leads out", `".."`},
		"a/../../b":              {"leads out"},
		"/workspace/../etc":      {"leads out"},
		"a\x00b":                 {"control characters"},
		"a\nb":                   {"control characters"},
		"none.txt":               {"none.txt", "no such file", "file_list"},
		"a/b.txt/c":              {"not a directory"},
		"a":                      {"directory", "file_list"},
		strings.Repeat("x", 300): {"too long"},
	} {
		refused(t, "file_read", args{"path": path}, words...)
	}
}

func TestMoveAndDelete(t *testing.T) {
	dir := workspace(t, map[string]string{"a": "a", "b": "b", "d/e/f": "f", "full/x": ""})
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	refused(t, "file_move", args{"from": "a", "to": "b"}, "exists already", "overwrite")
	refused(t, "file_move", args{"from": "none", "to": "c"}, "no such file")
	refused(t, "file_move", args{"from": "a", "to": "no/c"}, "directory no")
	refused(t, "file_move", args{"from": "a", "to": "d"}, "is a directory")
	refused(t, "file_move", args{"from": "a", "to": "a.sh"}, `".sh"`)
	refused(t, "file_move", args{"from": "d", "to": "d/e/g"}, "into itself")
	refused(t, "file_move", args{"from": ".", "to": "x"}, "/workspace", "allowed directory itself")
	refused(t, "file_move", args{"from": "link", "to": "x"}, "symbolic link")
	refused(t, "file_move", args{"from": "../a", "to": "x"}, "leads out")
	refused(t, "file_move", args{"from": "a", "to": "/etc/x"}, "host")
	result[moveResult](t, "file_move", args{"from": "a", "to": "d/a"})
	result[moveResult](t, "file_move", args{"from": "b", "to": "d/a", "overwrite": true})
	result[moveResult](t, "file_move", args{"from": "d", "to": "moved"})
	if got := result[readResult](t, "file_read", args{"path": "moved/a"}); got.Content != "b" {
		t.Errorf("moved/a holds %q", got.Content)
	}
	refused(t, "delete_file", args{"path": "full"}, "not empty")
	refused(t, "delete_file", args{"path": "none"}, "no such file")
	refused(t, "delete_file", args{"path": "."}, "/workspace", "allowed directory itself")
	result[removeResult](t, "delete_file", args{"path": "full/x"})
	result[removeResult](t, "delete_file", args{"path": "full"})
	result[removeResult](t, "delete_file", args{"path": "link"})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestListAndStat(t *testing.T) {
	dir := workspace(t, map[string]string{"b.txt": "12345", "a/c/d": "", "a/e.bin": "\x00",
		"sjis.txt": "\x93\xfa\x96\x7b"})
	must(t, os.Symlink("b.txt", filepath.Join(dir, "link")))
	paths := func(r listResult) (p []string) {
		for _, e := range r.Entries {
			p = append(p, e.Path+":"+e.Type)
		}
		return p
	}
	for _, c := range []struct {
		in   args
		want []string
		more bool
	}{
		{args{}, []string{"a:directory", "b.txt:file", "link:link", "sjis.txt:file"}, false},
		{args{"path": "/workspace/a"}, []string{"a/c:directory", "a/e.bin:file"}, false},
		{args{"depth": 3}, []string{"a:directory", "a/c:directory", "a/c/d:file", "a/e.bin:file", "b.txt:file",
			"link:link", "sjis.txt:file"}, false},
		{args{"limit": 2}, []string{"a:directory", "b.txt:file"}, true},
		{args{"path": "a/c", "limit": 1}, []string{"a/c/d:file"}, false},
	} {
		got := result[listResult](t, "file_list", c.in)
		if !slices.Equal(paths(got), c.want) || got.Truncated != c.more {
			t.Errorf("file_list(%v): %v, truncated %v", c.in, paths(got), got.Truncated)
		}
	}
	refused(t, "file_list", args{"path": "b.txt"}, "not a directory")
	refused(t, "file_list", args{"path": "none"}, "no such file")

	for path, want := range map[string]statResult{
		"b.txt":    {true, entry{"b.txt", "file", 5, ""}, "text/plain", "utf-8"},
		"sjis.txt": {true, entry{"sjis.txt", "file", 4, ""}, "text/plain", "shift_jis"},
		"a/e.bin":  {true, entry{"a/e.bin", "file", 1, ""}, "application/octet-stream", ""},
		"a":        {true, entry{"a", "directory", 0, ""}, "", ""},
		"link":     {true, entry{"link", "link", 0, ""}, "", ""},
		"none":     {false, entry{"none", "", 0, ""}, "", ""},
	} {
		got := result[statResult](t, "file_stat", args{"path": path})
		got.Modified = ""
		if got != want {
			t.Errorf("file_stat of %s: %+v", path, got)
		}
	}
	if got := callIn(t, "ja", "file_stat", args{"path": "none"}).Content[0].Text; got != "none はありません。" {
		t.Errorf("in Japanese: %q", got)
	}
}

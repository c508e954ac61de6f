package console_test

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
)

// TestPageWeight: the first page, all files together, is light enough for a slow phone.
func TestPageWeight(t *testing.T) {
	t.Parallel()
	total := 0
	for name, size := range console.Files() {
		if name != "" {
			total += size
		}
	}
	t.Logf("%d files have %d bytes", len(console.Files())-1, total)
	if total > 150_000 {
		t.Errorf("the page has %d bytes, want at most 150 kB", total)
	}
}

// TestPageImports: a module of the page imports or defines every function of another module that it calls. Without this a
// view fails only once it has rows.
func TestPageImports(t *testing.T) {
	t.Parallel()
	modules := map[string]string{}
	for _, pattern := range []string{"page/*.js", "page/views/*.js"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			modules[file] = string(text)
		}
	}
	exported := map[string]bool{}
	for _, text := range modules {
		for _, found := range regexp.MustCompile(`(?m)^export (?:async )?function (\w+)\(`).FindAllStringSubmatch(text, -1) {
			exported[found[1]] = true
		}
	}
	if len(modules) < 30 || len(exported) < 50 {
		t.Fatalf("found %d modules with %d functions", len(modules), len(exported))
	}
	known := regexp.MustCompile(
		`(?m)^import .*$|function \w+\(.*\{|\bconst [^=]*=|\blet [^=]*=|\(([^()]*)\) =>|\w+ =>`)
	call, word := regexp.MustCompile(`(?:^|[^.\w'])(\w+)\(`), regexp.MustCompile(`\w+`)
	for file, text := range modules {
		names := word.FindAllString(strings.Join(known.FindAllString(text, -1), "\n"), -1)
		for _, called := range call.FindAllStringSubmatch(text, -1) {
			if name := called[1]; exported[name] && !slices.Contains(names, name) {
				t.Errorf("%s calls %s and does not import it", file, name)
			}
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	b := newWorld(t, nil).browser()
	kinds := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	for name := range console.Files() {
		got := b.get(console.Path + name)
		if kind := kinds[path.Ext("index.html"+name)]; got.status != http.StatusOK || kind != "" &&
			got.header.Get("Content-Type") != kind {
			t.Errorf("%s: %d, %s", name, got.status, got.header.Get("Content-Type"))
		}
		tag := got.header.Get("ETag")
		again := b.do("GET", console.Path+name, nil, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		if again.status != http.StatusNotModified || again.body != "" || tag == "" {
			t.Errorf("%s again: %d with %d bytes", name, again.status, len(again.body))
		}
	}
	small := b.do("GET", console.Path, nil, func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip;q=0.5") })
	if small.header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(small.body, "\x1f\x8b") ||
		!slices.Contains(small.header.Values("Vary"), "Accept-Encoding") {
		t.Errorf("compressed: %v", small.header)
	}
	for languages, want := range map[string]string{"": "en", "ja,en;q=0.9": "ja", "fr, ja-JP;q=0.8": "ja", "en-US,ja;q=0.5": "en", "de": "en"} {
		got := b.do("GET", console.Path, nil, func(r *http.Request) { r.Header.Set("Accept-Language", languages) })
		if !strings.Contains(got.body, `href="lang/`+want+`.js"`) || strings.Count(got.body, `href="lang/`) != 1 {
			t.Errorf("for %q: %s", languages, got.body)
		}
	}
	for _, encodings := range []string{"", "gzip;q=0", "gzip; q=0.0", "br"} {
		plain := b.do("GET", console.Path, nil, func(r *http.Request) { r.Header.Set("Accept-Encoding", encodings) })
		if plain.header.Get("Content-Encoding") != "" ||
			!strings.Contains(strings.ToLower(plain.body), "<!doctype html>") {
			t.Errorf("with %q: %v", encodings, plain.header)
		}
	}
	for _, name := range []string{"nothing", "views", "views/", "/ja", "../console.go", "%2e%2e/console.go", "page/index.html", "index.html/"} {
		if got := b.get(console.Path + name); got.status == http.StatusOK || strings.Contains(got.body, "package") {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	if got := b.do("HEAD", console.Path, nil, nil); got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD: %d %q", got.status, got.body)
	}
	if got := b.do("POST", console.Path, nil, nil); got.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", got.status)
	}
}

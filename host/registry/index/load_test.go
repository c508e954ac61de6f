package index

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// web is a server with an index that a test changes.
type web struct {
	*httptest.Server
	body, tag string
	status    int
	requests  []string
}

func newWeb(t *testing.T, body string) *web {
	w := &web{body: body, tag: `"1"`}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests = append(w.requests, r.URL.Path+" "+r.Header.Get("If-None-Match"))
		switch {
		case w.status >= 300 && w.status < 400:
			http.Redirect(rw, r, w.body, w.status)
		case w.status != 0:
			rw.WriteHeader(w.status)
		case r.Header.Get("If-None-Match") == w.tag:
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("ETag", w.tag)
			_, _ = rw.Write([]byte(w.body))
		}
	}))
	t.Cleanup(w.Close)
	return w
}

const small = "plugins: [{name: weather, reference: weather.wasm}]"

// TestLoad: an index is requested again only if it has changed, and its copy serves while the server does not.
func TestLoad(t *testing.T) {
	t.Parallel()
	w := newWeb(t, small)
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	o := Options{Locations: []string{w.URL + "/index.yaml?key=secret"}, Dir: filepath.Join(t.TempDir(), "indexes"),
		Now: func() time.Time { return now }}
	load := func() ([]Plugin, Source) {
		plugins, sources := New(o).Load(t.Context(), nil)
		return plugins, sources[0]
	}
	if plugins, s := load(); names(plugins) != "weather" || s.Problem != "" || !s.Fetched.Equal(now) {
		t.Fatalf("first: %s, %+v", names(plugins), s)
	}
	first := now
	now = now.Add(time.Hour)
	if plugins, s := load(); names(plugins) != "weather" || !s.Fetched.Equal(now) || w.requests[1] != `/index.yaml "1"` {
		t.Errorf("unchanged: %s, %+v, %q", names(plugins), s, w.requests)
	}
	o.Fresh, now = time.Minute, now.Add(30*time.Second)
	if load(); len(w.requests) != 2 {
		t.Errorf("a fresh copy: %q", w.requests)
	}
	o.Fresh = 0
	for name, damage := range map[string]func(){
		"broken":    func() { w.body, w.tag = "<html>", `"2"` },
		"too large": func() { w.body, w.tag = small+strings.Repeat(" ", MaxBytes), `"3"` },
		"failing":   func() { w.status = http.StatusInternalServerError },
		"missing":   func() { w.status = http.StatusNotFound },
		"gone":      w.Close,
	} {
		if name == "gone" {
			continue // below: the others need the server
		}
		w.status = 0
		damage()
		if plugins, s := load(); names(plugins) != "weather" || s.Problem == "" || !s.Fetched.Equal(first.Add(time.Hour)) ||
			strings.Contains(s.Problem, "secret") {
			t.Errorf("%s: %s, %+v", name, names(plugins), s)
		}
	}
	w.Close()
	now = now.Add(100 * time.Hour)
	if plugins, s := load(); names(plugins) != "weather" || s.Problem == "" || strings.Contains(s.Problem, "secret") {
		t.Errorf("gone: %s, %+v", names(plugins), s)
	}
	copies, err := filepath.Glob(filepath.Join(o.Dir, "*"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies: %q, %v", copies, err)
	}
	if err := os.WriteFile(copies[0], []byte(`{"location":"another","body":"eA=="}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if plugins, s := load(); len(plugins) != 0 || s.Problem == "" || !s.Fetched.IsZero() {
		t.Errorf("a copy of another index: %s, %+v", names(plugins), s)
	}
}

// TestLoadElsewhere: a redirect of an index leads nowhere that the operator has not named.
func TestLoadElsewhere(t *testing.T) {
	t.Parallel()
	inside := newWeb(t, small)
	for to, want := range map[string]string{
		inside.URL + "/index.yaml": "only public addresses", "http://example.com/": "not https", "https://10.0.0.1/": "only public addresses",
		"file:///etc/passwd": "not https", "https://169.254.169.254/": "only public addresses",
	} {
		w := newWeb(t, to)
		w.status = http.StatusFound
		plugins, sources := New(Options{Locations: []string{w.URL}, Dir: t.TempDir()}).Load(t.Context(), nil)
		if len(plugins) > 0 || !strings.Contains(sources[0].Problem, want) {
			t.Errorf("%s: %+v, want %q", to, sources, want)
		}
	}
	if len(inside.requests) > 0 {
		t.Errorf("the other server was asked: %q", inside.requests)
	}
}

// TestBomb: a compressed index counts as what it becomes.
func TestBomb(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 100 {
			if _, err := z.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
		_ = z.Close()
	}))
	t.Cleanup(server.Close)
	_, sources := New(Options{Locations: []string{server.URL}, Dir: t.TempDir()}).Load(t.Context(), nil)
	if !strings.Contains(sources[0].Problem, "the response is larger than 4MiB") {
		t.Errorf("%+v", sources)
	}
}

// TestSeveral: indexes are independent of each other, and each answers for its own plugins.
func TestSeveral(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "index.yaml")
	if err := os.WriteFile(file, []byte("plugins: [{name: vveather, reference: a.wasm}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWeb(t, small)
	pulled := ""
	o := Options{Dir: dir, Locations: []string{w.URL, file, "oci://r.example.com/index:1", "oci://r.example.com/none"},
		Pull: func(_ context.Context, reference, known string, limit int64) ([]byte, string, error) {
			if pulled += fmt.Sprintln(reference, known, limit); strings.HasSuffix(reference, "none") {
				return nil, "", errors.New("no such artifact")
			}
			if known == "sha256:01" {
				return nil, known, nil
			}
			return []byte("plugins: [{name: rain, reference: 'oci://r.example.com/rain:1'}]"), "sha256:01", nil
		}}
	x := New(o)
	for range 2 {
		plugins, sources := x.Load(t.Context(), []string{"raln"})
		if names(plugins) != "weather vveather rain" || plugins[0].Resembles != "vveather" || plugins[2].Resembles != "raln" ||
			sources[3].Problem != "no such artifact" || sources[2].Plugins != 1 {
			t.Errorf("%+v %+v", plugins, sources)
		}
	}
	if !strings.Contains(pulled, "oci://r.example.com/index:1 sha256:01 4194304") {
		t.Errorf("pulled %s", pulled)
	}
	if p, err := x.Find(t.Context(), file, "vveather"); err != nil || p.Reference != filepath.Join(dir, "a.wasm") {
		t.Errorf("%+v, %v", p, err)
	}
	for location, name := range map[string]string{file: "weather", "/etc/passwd": "x", "oci://r.example.com/none": "x"} {
		if p, err := x.Find(t.Context(), location, name); err == nil {
			t.Errorf("%s %s: %+v", location, name, p)
		}
	}
}

func TestCheckLocation(t *testing.T) {
	t.Parallel()
	for location, valid := range map[string]bool{
		"https://tools.example.com/index.yaml": true, "oci://r.example.com/index:1": true, "index.yaml": true,
		"http://127.0.0.1:8080/index.yaml": true, "http://tools.example.com/": false, "ftp://x/y": false,
		"https://user:secret@x.example.com/": false,
	} {
		if err := CheckLocation(location); (err == nil) != valid || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", location, err)
		}
	}
}

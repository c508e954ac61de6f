package fakes

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ask sends a request to the fakes.
func ask(t *testing.T, f *Fakes, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8431"
	f.ServeHTTP(w, r)
	return w
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f := New()
	for body, want := range map[string]string{
		`{`: "no failure", `{"fake":"nobody"}`: "fake must be one of", `{"fake":"slack","status":99}`: "status 99",
		`{"fake":"slack","path":"["}`: "not a glob",
		`{"fake":"slack","stat":1}`:   "unknown field", `{"fake":"slack","times":-1}`: "times",
		`{"fake":"slack","delay":"soon"}`:  "duration",
		`{"fake":"slack","method":"post"}`: "capitals",
	} {
		if w := ask(t, f, "POST", "/_faults", body); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", body, w.Code, w.Body, want)
		}
	}
	const file = "/jma/bosai/common/const/area.json"
	ask(t, f, "POST", "/_faults", `{"fake":"jma","status":503,"delay":"1ms","header":{"Retry-After":"7"}}`)
	if w := ask(t, f, "GET", file, ""); w.Code != 503 || w.Header().Get("Retry-After") != "7" {
		t.Errorf("planned: %d %v", w.Code, w.Header())
	}
	ask(t, f, "DELETE", "/_faults", "")
	if w := ask(t, f, "GET", file, ""); w.Code != 200 || !json.Valid(w.Body.Bytes()) {
		t.Errorf("forgotten: %d %.100s", w.Code, w.Body)
	}
}

// TestForeignPages: a web page that somebody has open plans no failures, and reads and changes nothing.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	f := New()
	for _, foreign := range []func(*http.Request){
		func(r *http.Request) { r.Host = "evil.example" },
		func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		for _, path := range []string{"/_faults", "/slack/api/chat.postMessage"} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(`{"fake":"jma","status":503}`))
			r.Host = "127.0.0.1:8431"
			foreign(r)
			w := httptest.NewRecorder()
			if f.ServeHTTP(w, r); w.Code != http.StatusForbidden {
				t.Errorf("%s of %s with %v: %d", path, r.Host, r.Header, w.Code)
			}
		}
	}
	if w := ask(t, f, "GET", "/jma/bosai/common/const/area.json", ""); w.Code != 200 {
		t.Errorf("a page has planned a failure: %d", w.Code)
	}
}

func TestWriteConfig(t *testing.T) {
	t.Parallel()
	f, dir := New(), filepath.Join(t.TempDir(), "new")
	text, err := f.WriteConfig(dir, "http://127.0.0.1:1234")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.Names() {
		if !strings.Contains(text, "http://127.0.0.1:1234/"+name+"/") {
			t.Errorf("%s is not in the configuration", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "hako.yaml" && !strings.Contains(text, "{file: "+entry.Name()+"}") {
			t.Errorf("%s is written, and not used", entry.Name())
		}
	}
	path := filepath.Join(dir, "hako.yaml")
	if written, err := os.ReadFile(path); err != nil || string(written) != text {
		t.Errorf("written is %s (%v), want %s", written, err, text)
	}
	if _, err := f.WriteConfig(dir, "http://127.0.0.1:5678"); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.WriteFile(path, []byte("locale: ja\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteConfig(dir, "http://127.0.0.1:5678"); !errors.Is(err, ErrNotOurs) {
		t.Errorf("over somebody's configuration: %v", err)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/jma"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// fakeJMA serves files by path, and any status as a three-digit text. What it does not have is 404.
type fakeJMA struct {
	url   string
	files map[string]string

	mu       sync.Mutex
	requests []string // guarded by mu
}

func newFakeJMA(t testing.TB, files map[string]string) *fakeJMA {
	t.Helper()
	fake := &fakeJMA{files: files}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	fake.url = server.URL + "/bosai"
	return fake
}

// wholeFiles returns the files of the day of issue. Their table of areas has as many municipalities as JMA's, most of
// them made up.
func wholeFiles(t testing.TB, issued string) map[string]string {
	t.Helper()
	files := jma.Files(moment(t, issued))
	var table map[string]map[string]any
	if err := json.Unmarshal([]byte(files[areaPath]), &table); err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		table["class20s"][fmt.Sprintf("98%05d", 100*i)] = area{}
	}
	data, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	files[areaPath] = string(data)
	return files
}

func (f *fakeJMA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/bosai")
	f.mu.Lock()
	f.requests = append(f.requests, path)
	f.mu.Unlock()
	body, ok := f.files[path]
	var status int
	if n, _ := fmt.Sscanf(body, "%3d", &status); n == 1 && len(body) == 3 {
		http.Error(w, "made-up failure", status)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

func (f *fakeJMA) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// moment is a time in Japan.
func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, jst)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func forecastFile(office string) string { return forecastPath + office + ".json" }

// ask calls the tool and returns its text and structured content.
func ask(t testing.TB, url string, in arguments, now time.Time) (string, *report, error) {
	t.Helper()
	result, err := getWeather(pdktest.Context(t, pdktest.Options{Config: settings{BaseURL: url}}), in, now)
	if err != nil {
		return "", nil, err
	}
	if len(result.Content) != 1 || result.Content[0].Type != abi.Text {
		t.Fatalf("content is %v, want one text", result.Content)
	}
	return result.Content[0].Text, result.Structured.(*report), nil
}

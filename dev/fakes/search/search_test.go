package search

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	s := &Server{Pages: []Page{{"Bento boxes", "https://bento.example/", "A box for lunch."},
		{"箱", "https://hako.example/", "木の箱"}}}
	for target, want := range map[string]string{
		"/search?q=LUNCH+box&format=json": `"results":[{"title":"Bento boxes"`,
		"/search?q=木&format=json":         `"url":"https://hako.example/"`,
		"/search?q=absent&format=json":    `"results":[]`,
		"/search?q=+&format=json":         "No query",
		"/search?q=box":                   "403 Forbidden",
		"/other":                          "404",
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", target, w.Code, w.Body, want)
		}
	}
	if got := len(s.Queries.All()); got != 3 {
		t.Errorf("%d queries are remembered, want 3", got)
	}
}

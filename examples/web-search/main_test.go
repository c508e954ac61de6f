package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/search"
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/pdktest"
)

func TestSearch(t *testing.T) {
	fake := &search.Server{Pages: []search.Page{
		{Title: "Bento", URL: "https://bento.example/", Content: "A box for lunch."},
		{Title: "箱", URL: "https://hako.example/", Content: "A box."},
	}}
	server := httptest.NewServer(fake)
	defer server.Close()
	config := settings{server.URL + "/search", "q", []string{"format=json"}, "results", "content"}
	for name, test := range map[string]struct {
		query  query
		change func()
		want   string // structured content, or in the error's text
	}{
		"found": {query{"box", 10}, func() {},
			`{"results":[{"title":"Bento","url":"https://bento.example/","snippet":"A box for lunch."},{"title":"箱","url":"https://hako.example/","snippet":"A box."}]}`},
		"the best": {query{"A BOX", 1}, func() {},
			`{"results":[{"title":"Bento","url":"https://bento.example/","snippet":"A box for lunch."}]}`},
		"nothing":      {query{"a&format=html#x", 10}, func() {}, `{"results":[]}`},
		"other places": {query{"box", 10}, func() { config.Results = "web.results" }, `no list "web.results"`},
		"a page": {query{"box", 10}, func() { fake.Faults.Add(fault.Fault{Body: "<html>", Times: 1}) },
			"is not JSON"},
		"refused": {query{"box", 10}, func() { config.Parameters = nil }, "HTTP 403"},
	} {
		before := config
		test.change()
		r := pdktest.CallTool(t, "web_search", test.query, pdktest.Options{Config: config})
		config = before
		if got := string(r.StructuredContent) + text(r.Content); !strings.Contains(got, test.want) ||
			r.IsError == strings.HasPrefix(test.want, "{") {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func text(content []pdk.Content) string {
	if len(content) == 0 {
		return ""
	}
	return content[0].Text
}

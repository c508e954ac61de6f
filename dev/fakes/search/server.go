// Package search is a fake of a search engine with the JSON interface of SearXNG
// (docs.searxng.org/dev/search_api.html): GET /search?q=...&format=json.
package search

import (
	"net/http"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Server is an http.Handler that finds in Pages. The zero value finds nothing; its methods are safe for concurrent use.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan
	// Pages are the pages that can be found. It must not change while the server is in use.
	Pages []Page
	// Queries are the queries of all searches.
	Queries fakehttp.Log[string]
}

// Page is a page of the web.
type Page struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Content string `json:"content"`
}

// ServeHTTP serves the search.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q")
	switch {
	case r.URL.Path != "/search":
		http.NotFound(w, r)
		return
	case strings.TrimSpace(query) == "":
		http.Error(w, `{"error":"No query"}`, http.StatusBadRequest)
		return
	case r.URL.Query().Get("format") != "json": // the page for people, which an operator may leave as the only format
		http.Error(w, "403 Forbidden", http.StatusForbidden)
		return
	}
	s.Queries.Add(query)
	fakehttp.JSON(w, http.StatusOK, map[string]any{"query": query, "results": s.find(query)})
}

// find returns the pages that hold every word of the query, in any case.
func (s *Server) find(query string) []Page {
	found := []Page{}
	for _, page := range s.Pages {
		text := strings.ToLower(page.Title + " " + page.Content)
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(query)),
			func(word string) bool { return !strings.Contains(text, word) }) {
			found = append(found, page)
		}
	}
	return found
}

// Package github is a fake of the issues of GitHub's REST API (docs.github.com/rest/issues).
package github

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Server is an http.Handler. Make one with New; its methods are safe for concurrent use.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan

	mux          *http.ServeMux
	mu           sync.Mutex
	tokens       map[string]bool    // guarded by mu; true: may write
	repositories map[string][]Issue // guarded by mu; by "owner/name"
}

// Issue is an issue of a repository.
type Issue struct {
	Number int
	Title  string
	Body   string
	Labels []string
}

// New returns a server without tokens and repositories.
func New() *Server {
	s := &Server{mux: http.NewServeMux(), tokens: map[string]bool{}, repositories: map[string][]Issue{}}
	s.mux.HandleFunc("POST /repos/{owner}/{name}/issues", s.create)
	s.mux.HandleFunc("GET /repos/{owner}/{name}/issues/{number}", s.get)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "Not Found") })
	return s
}

// AddToken makes token good for reading, or also for writing, issues of every repository.
func (s *Server) AddToken(token string, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = write
}

// AddRepository adds a repository, "owner/name", without issues.
func (s *Server) AddRepository(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repositories[name] = []Issue{}
}

// Issues returns the issues of a repository, in order.
func (s *Server) Issues(repository string) []Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.repositories[repository])
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() == "" {
			refuse(w, http.StatusForbidden,
				"Request forbidden by administrative rules: a User-Agent header is required.")
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mux.ServeHTTP(w, r)
	})).ServeHTTP(w, r)
}

// open returns the name of the request's repository if the token may have to do with it; otherwise it has answered. It
// needs mu.
func (s *Server) open(w http.ResponseWriter, r *http.Request, write bool) (repository string, ok bool) {
	mayWrite, known := s.tokens[fakehttp.Bearer(r)]
	repository = r.PathValue("owner") + "/" + r.PathValue("name")
	switch {
	case !known:
		refuse(w, http.StatusUnauthorized, "Bad credentials")
	case s.repositories[repository] == nil:
		refuse(w, http.StatusNotFound, "Not Found")
	case write && !mayWrite:
		refuse(w, http.StatusForbidden, "Resource not accessible by personal access token")
	default:
		return repository, true
	}
	return "", false
}

// maxBody bounds a request, in bytes; GitHub's bound on a body is 65,536 characters.
const maxBody = 1 << 20

// Bounds of an issue, in characters.
const (
	maxTitle = 256
	maxText  = 65536
)

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	repository, ok := s.open(w, r, true)
	if !ok {
		return
	}
	var in struct {
		Title  string   `json:"title"`
		Body   string   `json:"body"`
		Labels []string `json:"labels"`
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || json.Unmarshal(data, &in) != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	switch {
	case strings.TrimSpace(in.Title) == "":
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "title", "missing_field")
		return
	case len([]rune(in.Title)) > maxTitle:
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "title", "custom")
		return
	case len([]rune(in.Body)) > maxText:
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "body", "custom")
		return
	}
	issue := Issue{len(s.repositories[repository]) + 1, in.Title, in.Body, in.Labels}
	s.repositories[repository] = append(s.repositories[repository], issue)
	fakehttp.JSON(w, http.StatusCreated, issue.wire(repository))
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	repository, ok := s.open(w, r, false)
	if !ok {
		return
	}
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 1 || n > len(s.repositories[repository]) {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	fakehttp.JSON(w, http.StatusOK, s.repositories[repository][n-1].wire(repository))
}

func (i Issue) wire(repository string) any {
	labels := []any{}
	for _, label := range i.Labels {
		labels = append(labels, map[string]string{"name": label})
	}
	return map[string]any{
		"number": i.Number, "title": i.Title, "body": i.Body, "labels": labels, "state": "open",
		"html_url": fmt.Sprintf("https://github.com/%s/issues/%d", repository, i.Number),
	}
}

// refuse answers as GitHub does; field and code, if given, say what is wrong with an issue.
func refuse(w http.ResponseWriter, status int, message string, fieldAndCode ...string) {
	answer := map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest",
		"status": strconv.Itoa(status)}
	if len(fieldAndCode) == 2 {
		answer["errors"] = []any{map[string]string{"resource": "Issue", "field": fieldAndCode[0],
			"code": fieldAndCode[1]}}
	}
	fakehttp.JSON(w, status, answer)
}

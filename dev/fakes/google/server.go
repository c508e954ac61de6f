// Package google is a fake of Google's OAuth2 token endpoint and the Sheets API v4.
//
// It speaks the documented formats (developers.google.com/sheets/api and /identity/protocols/oauth2/service-account),
// keeps spreadsheets in memory, checks what it is sent, and fails as the real ones do. Everything is on one address:
//
//	POST /token                                     a service account's signed assertion for an access token
//	GET  /v4/spreadsheets/{id}                      titles and sizes of the sheets
//	GET  /v4/spreadsheets/{id}/values/{range}
//	PUT  /v4/spreadsheets/{id}/values/{range}
//	POST /v4/spreadsheets/{id}/values/{range}:append
//	POST /v4/spreadsheets/{id}/values:batchUpdate
package google

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
)

// Server is an http.Handler. Make one with New; its methods are safe for concurrent use.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan

	mu           sync.Mutex
	accounts     map[string]*account     // guarded by mu; by e-mail address
	tokens       map[string]*accessToken // guarded by mu
	spreadsheets map[string]*spreadsheet // guarded by mu; by ID
	now          func() time.Time
}

// spreadsheet is a document and who may do what with it.
type spreadsheet struct {
	title  string
	sheets []*sheet
	shared map[string]string // "reader" or "writer", by e-mail address
}

// New returns a server without accounts and spreadsheets.
func New() *Server {
	return &Server{
		accounts: map[string]*account{}, tokens: map[string]*accessToken{}, spreadsheets: map[string]*spreadsheet{},
		now: time.Now,
	}
}

// AddSpreadsheet adds an empty spreadsheet with sheets of these titles, each of 1,000 rows and 26 columns. It is shared
// with nobody.
func (s *Server) AddSpreadsheet(id, title string, sheets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &spreadsheet{title: title, shared: map[string]string{}}
	for _, name := range sheets {
		d.sheets = append(d.sheets, newSheet(name))
	}
	s.spreadsheets[id] = d
}

// Share lets the account with this address read the spreadsheet (role "reader") or also write it ("writer").
func (s *Server) Share(id, email, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spreadsheets[id].shared[email] = role
}

// Values returns the cells of a sheet as they are stored: formulas as their text, numbers as float64. Empty cells are
// nil; those at the end of a row and rows at the end of the sheet are left out.
func (s *Server) Values(id, title string) [][]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.spreadsheets[id].sheet(title)
	return sh.read(sh.whole(), renderFormula)
}

func (d *spreadsheet) sheet(title string) *sheet {
	for _, sh := range d.sheets {
		if strings.EqualFold(sh.title, title) {
			return sh
		}
	}
	return nil
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		s.serveToken(w, r)
		return
	}
	answer, failed := s.api(r)
	if failed != nil {
		reply(w, failed.Code, map[string]any{"error": failed})
		return
	}
	reply(w, http.StatusOK, answer)
}

// maxBody bounds what is read of a request, in bytes: more than the 2 MB that Google recommends.
const maxBody = 10 << 20

// api serves one request of the Sheets API. The path is split before it is decoded: a range is one segment.
func (s *Server) api(r *http.Request) (any, *apiError) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, invalid("Request payload size exceeds the limit: %d bytes.", maxBody)
	}
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i := range segments {
		if segments[i], err = url.PathUnescape(segments[i]); err != nil {
			return nil, invalid("Malformed path: %v", err)
		}
	}
	if len(segments) < 3 || segments[0] != "v4" || segments[1] != "spreadsheets" {
		return nil, &apiError{404, "Requested URL was not found on this server.", "NOT_FOUND", nil}
	}
	id, verb, _ := strings.Cut(segments[2], ":")
	s.mu.Lock()
	defer s.mu.Unlock()
	d, failed := s.authorize(r, id)
	if failed != nil {
		return nil, failed
	}
	return d.route(&request{r.Method, id, verb, segments[3:], r.URL.Query(), body})
}

// request is a call of the API, taken apart.
type request struct {
	method string
	id     string
	verb   string   // after the ID's colon
	rest   []string // segments after the ID
	query  url.Values
	body   []byte
}

// route finds the method for a request. A range may itself hold colons, so a verb behind one is only looked for at its
// end.
func (d *spreadsheet) route(r *request) (any, *apiError) {
	var kind, name, verb string
	if len(r.rest) > 0 {
		kind, verb, _ = strings.Cut(r.rest[0], ":")
	}
	if len(r.rest) == 2 {
		name = r.rest[1]
		if before, ok := strings.CutSuffix(name, ":append"); ok && r.method == "POST" {
			name, verb = before, "append"
		}
	}
	switch {
	case r.method == "GET" && len(r.rest) == 0 && r.verb == "":
		return d.describe(r), nil
	case kind != "values" || len(r.rest) > 2:
	case r.method == "GET" && len(r.rest) == 2:
		return d.get(r, name)
	case r.method == "PUT" && len(r.rest) == 2:
		return d.put(r, name)
	case r.method == "POST" && verb == "append":
		return d.append(r, name)
	case r.method == "POST" && len(r.rest) == 1 && verb == "batchUpdate":
		return d.putAll(r)
	}
	return nil, &apiError{404, "Requested URL was not found on this server.", "NOT_FOUND", nil}
}

// apiError is Google's error model (cloud.google.com/apis/design/errors).
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []any  `json:"details,omitempty"`
}

func invalid(format string, args ...any) *apiError {
	return &apiError{400, fmt.Sprintf(format, args...), "INVALID_ARGUMENT", nil}
}

// reply answers with indented JSON, as Google does.
func reply(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(answer)
}

// Package freee is a fake of freee HR and its OAuth server, for tests and for trying things without a network.
//
// It speaks the documented format (API version 2022-02-01: paging, error forms, headers, limits, pay months, single-use
// refresh tokens) and refuses requests that the published schema does not allow. The API is under /hr, authorization
// under /public_api, as at freee.
package freee

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Options configure a Server. A nil *Options means all defaults.
type Options struct {
	// Companies are those of the connected user. Nil means Demo's.
	Companies []*Company
	// Now is the clock of tokens, limits and retirements. Nil means time.Now.
	Now func() time.Time
	// ClientID and ClientSecret are those of the only app that is known. Empty means "freee-client" and "freee-secret".
	ClientID, ClientSecret string
	// RateLimit limits the requests that are served per hour. Zero means 10000.
	RateLimit int
	// Expired403 answers an expired access token with 403 instead of 401; freee does either.
	Expired403 bool
}

// Server is the fake, made by New. It is safe for concurrent use; the companies must not change while it serves.
type Server struct {
	// Faults are planned failures, on paths such as "/hr/api/v1/employees" and "/public_api/token".
	Faults fault.Plan
	// Requests are those that were served, refusals included and planned failures not.
	Requests fakehttp.Log[Request]

	options Options
	handler http.Handler

	mu     sync.Mutex
	auth   authorizations // guarded by mu, as is all below
	window time.Time      // when the hour of the limit began
	served int            // requests in it
	lastID int
}

// Request is a request with the status of its answer.
type Request struct {
	Method, Path string
	Query        url.Values
	Status       int
}

// New returns a server. Options are copied.
func New(options *Options) *Server {
	s := &Server{}
	if options != nil {
		s.options = *options
	}
	if s.options.Companies == nil {
		s.options.Companies = Demo()
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	if s.options.ClientID == "" {
		s.options.ClientID, s.options.ClientSecret = "freee-client", "freee-secret"
	}
	s.options.RateLimit = cmp.Or(s.options.RateLimit, 10_000)
	s.auth = newAuthorizations()
	s.handler = s.Faults.Wrap(s.logged(s.routes()))
	return s
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /public_api/authorize", s.authorize)
	mux.HandleFunc("POST /public_api/token", s.token)
	for pattern, serve := range map[string]func(*call){
		"users/me":                         s.me,
		"companies/{company_id}/employees": s.companyEmployees,
		"employees":                        s.employees,
		"employee_group_memberships":       s.memberships,
		"employees/{employee_id}/work_records/{date}":                  s.workRecord,
		"employees/{employee_id}/work_record_summaries/{year}/{month}": s.summary,
	} {
		mux.HandleFunc("GET /hr/api/v1/"+pattern, s.api(serve))
	}
	mux.HandleFunc("/hr/", func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusNotFound, "not_found", "指定されたパスは存在しません。")
	})
	return mux
}

// ServeHTTP serves the API and the OAuth server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// logged notes every request with its status.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(status, r)
		s.Requests.Add(Request{r.Method, r.URL.Path, r.URL.Query(), status.status})
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// call is one authorized request to the API.
type call struct {
	http.ResponseWriter
	request *http.Request
	server  *Server
	now     time.Time
}

// api checks the limit and the access token before an endpoint is served.
func (s *Server) api(serve func(*call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := s.options.Now()
		if !s.admit(w, now) {
			problem(w, http.StatusTooManyRequests, "too_many_requests", "APIリクエストの上限に達しました。")
			return
		}
		switch s.auth.check(s, fakehttp.Bearer(r), now) {
		case valid:
			serve(&call{w, r, s, now})
		case expired:
			s.refuseExpired(w)
		default:
			fakehttp.JSON(w, http.StatusUnauthorized, map[string]any{"message": "ログインをしてください。"})
		}
	}
}

// admit counts the request against the hour's limit, and sets the headers that every answer has.
func (s *Server) admit(w http.ResponseWriter, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.window) >= time.Hour {
		s.window, s.served = now.Truncate(time.Hour), 0
	}
	s.served++
	s.lastID++
	h := w.Header()
	h.Set("X-Request-Id", fmt.Sprintf("fake-%06d", s.lastID))
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.options.RateLimit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, s.options.RateLimit-s.served)))
	h.Set("X-RateLimit-Reset", s.window.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"))
	return s.served <= s.options.RateLimit
}

func (s *Server) refuseExpired(w http.ResponseWriter) {
	const message = "アクセスする権限がありません"
	if s.options.Expired403 {
		fakehttp.JSON(w, http.StatusForbidden, map[string]any{"error": "access_denied", "message": message,
			"code": "expired_access_token"})
		return
	}
	fakehttp.JSON(w, http.StatusUnauthorized, map[string]any{"message": message, "code": "expired_access_token"})
}

// problem answers in the form of the schema's component "error".
func problem(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/problem+json")
	fakehttp.JSON(w, status, map[string]any{
		"status_code": status,
		"errors":      []any{map[string]any{"type": kind, "messages": []string{message}}},
	})
}

func (c *call) bad(message string) { problem(c, http.StatusBadRequest, "bad_request", message) }
func (c *call) forbidden() {
	problem(c, http.StatusForbidden, "forbidden", "アクセス権限がありません。")
}
func (c *call) notFound() {
	problem(c, http.StatusNotFound, "not_found", "指定されたデータは存在しません。")
}
func (c *call) ok(body any) { fakehttp.JSON(c, http.StatusOK, body) }

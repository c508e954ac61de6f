// Package smarthr is a fake of SmartHR's API v1, for tests and for trying things without a network. It serves the
// list of crews (employees), with paging and limits in headers as developer.smarthr.jp has them.
package smarthr

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Options configure a Server. A nil *Options means all defaults.
type Options struct {
	// Crews are the company's people. Nil means made-up ones.
	Crews []*Crew
	// Token is the access token that is accepted. Empty means "smarthr-token".
	Token string
	// RateLimit limits the requests that are served. Zero means 5000.
	RateLimit int
}

// Server is the fake, made by New. It is safe for concurrent use; the crews must not change while it serves.
type Server struct {
	// Faults are planned failures, on paths such as "/api/v1/crews".
	Faults fault.Plan
	// Requests are the queries for crews.
	Requests fakehttp.Log[url.Values]

	options Options
	handler http.Handler
}

// Crew is one person. What the fake makes up beyond these fields contains Canary.
type Crew struct {
	ID, Code                         string
	LastName, FirstName              string
	BusinessLast, BusinessFirst      string
	Departments                      []string
	Position                         string
	PresetType, Status               string
	Entered, Resigned                string
	LegacyDepartment, LegacyPosition bool // the fields are plain strings, as older companies have them
}

// Canary is in every text that must never leave a plugin.
const Canary = "カナリア-canary"

// New returns a server. Options are copied.
func New(options *Options) *Server {
	s := &Server{}
	if options != nil {
		s.options = *options
	}
	if s.options.Crews == nil {
		s.options.Crews = demo()
	}
	s.options.Token = cmp.Or(s.options.Token, "smarthr-token")
	s.options.RateLimit = cmp.Or(s.options.RateLimit, 5000)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/crews", s.crews)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, 4, "not_found", "見つかりません")
	})
	s.handler = s.Faults.Wrap(mux)
	return s
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// admit counts the request and sets the headers of both limits.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	left := s.options.RateLimit - s.Requests.Add(r.URL.Query())
	for _, name := range []string{"x-rate-limit-", "x-intensive-rate-limit-"} {
		w.Header().Set(name+"limit", strconv.Itoa(s.options.RateLimit))
		w.Header().Set(name+"remaining", strconv.Itoa(max(0, left)))
	}
	w.Header().Set("x-rate-limit-reset", "3600")
	w.Header().Set("x-intensive-rate-limit-reset", "10")
	return left >= 0
}

func (s *Server) crews(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	page, pageErr := number(q, "page", 1, 1_000_000)
	size, sizeErr := number(q, "per_page", 10, 100)
	switch {
	case !s.admit(w, r):
		refuse(w, http.StatusTooManyRequests, 6, "too_many_requests", "リクエスト制限の上限を超えました")
	case fakehttp.Bearer(r) != s.options.Token:
		refuse(w, http.StatusUnauthorized, 2, "unauthorized_token", "無効なアクセストークンです")
	case pageErr != nil || sizeErr != nil || unknown(q):
		refuse(w, http.StatusBadRequest, 1, "bad_request", "パラメータが不正です")
	default:
		s.page(w, r, page, size)
	}
}

func number(q url.Values, name string, otherwise, most int) (int, error) {
	if !q.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(q.Get(name))
	if err == nil && (n < 1 || n > most) {
		err = strconv.ErrRange
	}
	return n, err
}

func unknown(q url.Values) bool {
	for name := range q {
		if !slices.Contains([]string{"page", "per_page", "emp_status", "emp_code", "sort"}, name) {
			return true
		}
	}
	return false
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, page, size int) {
	var crews []*Crew
	for _, c := range s.options.Crews {
		if status := r.URL.Query().Get("emp_status"); status == "" || status == c.Status {
			crews = append(crews, c)
		}
	}
	from := min((page-1)*size, len(crews))
	list := []any{}
	for _, c := range crews[from:min(from+size, len(crews))] {
		list = append(list, c.whole())
	}
	last := max(1, (len(crews)+size-1)/size)
	var links []string
	for _, link := range []struct {
		page int
		rel  string
	}{{1, "first"}, {page - 1, "prev"}, {page + 1, "next"}, {last, "last"}} {
		if link.page >= 1 && link.page <= last {
			links = append(links, fmt.Sprintf(`<http://%s%s?page=%d&per_page=%d>; rel="%s"`, r.Host, r.URL.Path,
				link.page, size, link.rel))
		}
	}
	w.Header().Set("Link", strings.Join(links, ", "))
	w.Header().Set("x-total-count", strconv.Itoa(len(crews)))
	fakehttp.JSON(w, http.StatusOK, list)
}

func refuse(w http.ResponseWriter, status, code int, kind, message string) {
	fakehttp.JSON(w, status, map[string]any{"code": code, "type": kind, "message": message, "errors": nil})
}

// Package kot is a fake of KING OF TIME's WebAPI v1.0, for tests and for trying things without a network.
//
// It speaks the format of developer.kingtime.jp: lists of the whole company, null properties left out, hours in which
// the API is closed, and both forms of errors. It refuses parameters that the API does not have.
package kot

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Options configure a Server. A nil *Options means all defaults.
type Options struct {
	// Employees are the company's people. Nil means Demo's.
	Employees []*Employee
	// Token is the access token that is accepted. Empty means "kot-token".
	Token string
	// ClosingDay is the last day of a month's figures, 1 to 31; 31 is the end of the month. Zero means 31.
	ClosingDay int
	// Now is the clock that decides whether the API is closed. Nil means time.Now.
	Now func() time.Time
}

// Server is the fake, made by New. It is safe for concurrent use; the employees must not change while it serves.
type Server struct {
	// Faults are planned failures, on paths such as "/v1.0/employees".
	Faults fault.Plan
	// Requests are those that reached the server, refused or not; planned failures are not among them.
	Requests fakehttp.Log[Request]

	options Options
	handler http.Handler
}

// Request is a client's request.
type Request struct {
	Path  string
	Query url.Values
}

// New returns a server. Options are copied.
func New(options *Options) *Server {
	s := &Server{}
	if options != nil {
		s.options = *options
	}
	if s.options.Employees == nil {
		s.options.Employees = Demo()
	}
	s.options.Token = cmp.Or(s.options.Token, "kot-token")
	s.options.ClosingDay = cmp.Or(s.options.ClosingDay, 31)
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1.0/employees", s.guard(s.employees, "date", "division", "includeResigner",
		"additionalFields"))
	mux.HandleFunc("GET /v1.0/daily-workings", s.guard(s.daily, "start", "end", "division", "ondivision",
		"additionalFields"))
	mux.HandleFunc("GET /v1.0/daily-workings/timerecord", s.guard(s.timeRecords, "start", "end", "division",
		"ondivision", "employeeKeys", "additionalFields"))
	mux.HandleFunc("GET /v1.0/monthly-workings/{month}", s.guard(s.monthly, "division", "additionalFields"))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, 120, "Not Found.")
	})
	s.handler = s.Faults.Wrap(mux)
	return s
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Codes of errors.
const (
	badToken = 100
	closed   = 104
	badValue = 210
)

// guard checks token, hours and parameters.
func (s *Server) guard(serve http.HandlerFunc, parameters ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(Request{r.URL.Path, r.URL.Query()})
		if fakehttp.Bearer(r) != s.options.Token {
			refuse(w, http.StatusForbidden, badToken, "Bad Authentication.")
			return
		}
		if Closed(s.options.Now()) {
			refuse(w, http.StatusForbidden, closed, "Forbidden time zone.")
			return
		}
		for name, values := range r.URL.Query() {
			if !slices.Contains(parameters, name) || len(values) != 1 {
				refuse(w, http.StatusBadRequest, badValue, name+" is invalid.")
				return
			}
		}
		serve(w, r)
	}
}

// Closed reports whether the API is closed: from 08:30 to 10:00 and from 17:30 to 18:30 in Japan.
func Closed(now time.Time) bool {
	clock := now.In(jst).Format("15:04")
	return clock >= "08:30" && clock < "10:00" || clock >= "17:30" && clock < "18:30"
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	fakehttp.JSON(w, status, map[string]any{"errors": []any{map[string]any{"message": message, "code": code}}})
}

// TooManyRequests is the body of the refusal of too many requests, which comes with 429. It has a form of its own.
const TooManyRequests = `{"code":"303","message":"Too Many Requests"}`

// additional reports whether the request asks for a field that does not come by itself.
func additional(r *http.Request, field string) bool {
	return slices.Contains(strings.Split(r.URL.Query().Get("additionalFields"), ","), field)
}

package kot

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
)

func atNow(t *testing.T, clock string) func() time.Time {
	t.Helper()
	now, err := time.ParseInLocation("2006-01-02 15:04", "2026-11-20 "+clock, jst)
	if err != nil {
		t.Fatal(err)
	}
	return func() time.Time { return now }
}

func get(t *testing.T, s *Server, target, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1.0/"+target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestRefusals holds the refusals of the documentation, and those of requests that the API does not know.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, clock, target, token string
		status                     int
		body                       string
	}{
		{"bad token", "12:00", "employees", "x", 403, `{"errors":[{"code":100,"message":"Bad Authentication."}]}`},
		{"closed in the morning", "08:30", "employees", "kot-token", 403,
			`{"errors":[{"code":104,"message":"Forbidden time zone."}]}`},
		{"closed in the evening", "18:29", "employees", "kot-token", 403, `"code":104`},
		{"unknown parameter", "12:00", "employees?page=2", "kot-token", 400, "page is invalid."},
		{"repeated parameter", "12:00", "employees?date=2026-05-01&date=2026-05-02", "kot-token", 400,
			"date is invalid."},
		{"no end", "12:00", "daily-workings?start=2026-05-01", "kot-token", 400, "start or end is invalid."},
		{"62 days", "12:00", "daily-workings?start=2026-05-01&end=2026-07-01", "kot-token", 200, ""},
		{"63 days", "12:00", "daily-workings?start=2026-05-01&end=2026-07-02", "kot-token", 400, "62 days"},
		{"too long ago", "12:00", "daily-workings?start=2023-11-01&end=2023-11-02", "kot-token", 400, "out of range"},
		{"too far ahead", "12:00", "daily-workings?start=2027-11-20&end=2027-11-21", "kot-token", 400, "out of range"},
		{"no month", "12:00", "monthly-workings/2026-13", "kot-token", 400, "date is invalid."},
		{"no such path", "12:00", "salaries", "kot-token", 404, "Not Found."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer := get(t, New(&Options{Now: atNow(t, test.clock)}), test.target, test.token)
			if answer.Code != test.status || !strings.Contains(answer.Body.String(), test.body) {
				t.Errorf("%d %.300s, want %d %s", answer.Code, answer.Body, test.status, test.body)
			}
		})
	}
}

// TestEmployees checks that those who have left and additional fields come when they are asked for, and that null is
// left out.
func TestEmployees(t *testing.T) {
	t.Parallel()
	s := New(&Options{Now: atNow(t, "12:00")})
	list := func(query string) []map[string]any {
		var list []map[string]any
		if err := json.Unmarshal(get(t, s, "employees"+query, "kot-token").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := list(""); len(got) != 2 || got[0]["hiredDate"] != nil {
		t.Errorf("got %v", got)
	}
	got := list("?includeResigner=true&additionalFields=hiredDate,resignationDate")
	if _, there := got[0]["resignationDate"]; len(got) != 3 || there || got[0]["hiredDate"] != "2016-04-01" ||
		got[2]["resignationDate"] != "2026-03-31" {
		t.Errorf("got %v", got)
	}
	if requests := s.Requests.All(); len(requests) != 2 || requests[1].Query.Get("includeResigner") != "true" {
		t.Errorf("requests are %v", requests)
	}
}

// TestMonths checks that a month closes on its day, and that its figures are the sums of its days.
func TestMonths(t *testing.T) {
	t.Parallel()
	for closing, want := range map[int]string{31: "2026-02-01 2026-02-28", 20: "2026-01-21 2026-02-20", 30: "2026-01-31 2026-02-28"} {
		s := New(&Options{Now: atNow(t, "12:00"), ClosingDay: closing})
		var list []struct{ StartDate, EndDate string }
		if err := json.Unmarshal(get(t, s, "monthly-workings/2026-02", "kot-token").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		if got := list[0].StartDate + " " + list[0].EndDate; got != want {
			t.Errorf("closing on %d: %s, want %s", closing, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := New(&Options{Now: atNow(t, "12:00")})
	s.Faults.Add(fault.Fault{Path: "/v1.0/employees", Times: 1, Status: 429, Body: TooManyRequests})
	if w := get(t, s, "employees", "kot-token"); w.Code != 429 || !strings.Contains(w.Body.String(), `"303"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := get(t, s, "employees", "kot-token"); w.Code != 200 {
		t.Errorf("afterwards %d", w.Code)
	}
}

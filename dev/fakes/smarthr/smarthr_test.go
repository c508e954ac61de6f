package smarthr

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, s *Server, target, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/"+target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestPages holds the headers of a page in the middle, and the filter.
func TestPages(t *testing.T) {
	t.Parallel()
	s := New(nil)
	w := get(t, s, "crews?page=2&per_page=1", "smarthr-token")
	var list []map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list) != 1 || list[0]["emp_status"] != "absent" {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	if w.Header().Get("x-total-count") != "4" {
		t.Errorf("x-total-count: %s", w.Header().Get("x-total-count"))
	}
	for _, rel := range []string{`page=1&per_page=1>; rel="first"`, `page=1&per_page=1>; rel="prev"`, `page=3&per_page=1>; rel="next"`, `page=4&per_page=1>; rel="last"`} {
		if !strings.Contains(w.Header().Get("Link"), rel) {
			t.Errorf("Link is %s, want %s", w.Header().Get("Link"), rel)
		}
	}
	if w := get(t, s, "crews?emp_status=retired", "smarthr-token"); w.Header().Get("x-total-count") != "1" {
		t.Errorf("retired: %s", w.Header().Get("x-total-count"))
	}
	if n := len(s.Requests.All()); n != 2 {
		t.Errorf("%d requests noted", n)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := New(&Options{RateLimit: 6})
	for _, test := range []struct {
		target, token string
		status        int
		kind          string
	}{
		{"crews", "x", 401, `"type":"unauthorized_token"`},
		{"crews?per_page=101", "smarthr-token", 400, `"type":"bad_request"`},
		{"crews?page=0", "smarthr-token", 400, `"type":"bad_request"`},
		{"crews?limit=1", "smarthr-token", 400, `"type":"bad_request"`},
		{"payrolls", "smarthr-token", 404, `"type":"not_found"`},
		{"crews?page=9", "smarthr-token", 200, "[]"},
		{"crews", "smarthr-token", 200, "架空"},
		{"crews", "smarthr-token", 429, `"type":"too_many_requests"`},
	} {
		w := get(t, s, test.target, test.token)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.kind) {
			t.Errorf("%s: %d %.200s, want %d %s", test.target, w.Code, w.Body, test.status, test.kind)
		}
		if w.Code == 429 && (w.Header().Get("x-rate-limit-remaining") != "0" ||
			w.Header().Get("x-rate-limit-reset") == "") {
			t.Errorf("headers are %v", w.Header())
		}
	}
}

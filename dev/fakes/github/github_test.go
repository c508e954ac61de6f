package github

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func TestIssues(t *testing.T) {
	t.Parallel()
	s := New()
	s.AddToken("writer", true)
	s.AddToken("reader", false)
	s.AddRepository("hako-run/demo")
	server := httptest.NewServer(s)
	defer server.Close()
	const issues = "/repos/hako-run/demo/issues"
	for _, test := range []struct {
		method, path, token, body string
		status                    int
		says                      string
	}{
		{"POST", issues, "writer", `{"title":"t","body":"b","labels":["bug"]}`, 201,
			`"html_url":"https://github.com/hako-run/demo/issues/1"`},
		{"GET", issues + "/1", "reader", "", 200, `"labels":[{"name":"bug"}]`},
		{"GET", issues + "/2", "reader", "", 404, "Not Found"},
		{"POST", issues, "reader", `{"title":"t"}`, 403, "not accessible"},
		{"POST", issues, "wrong", `{"title":"t"}`, 401, "Bad credentials"},
		{"POST", "/repos/hako-run/other/issues", "writer", `{"title":"t"}`, 404, "Not Found"},
		{"POST", issues, "writer", `{"title":" "}`, 422, "missing_field"},
		{"POST", issues, "writer", `{"title":"` + strings.Repeat("x", maxTitle+1) + `"}`, 422, "Validation Failed"},
		{"POST", issues, "writer", `{`, 400, "Problems parsing JSON"},
		{"DELETE", issues + "/1", "writer", "", 404, "Not Found"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path,
			strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+test.token)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != test.status || !strings.Contains(string(text), test.says) {
			t.Errorf("%s %s %s: %d %s, want %d and %q", test.method, test.path, test.body, answer.StatusCode, text,
				test.status, test.says)
		}
	}
	if got, want := s.Issues("hako-run/demo"), []Issue{{1, "t", "b", []string{"bug"}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

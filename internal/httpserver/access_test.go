package httpserver

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRequestIDs: a well-formed ID is kept, anything else is replaced.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	fresh := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for name, test := range map[string]struct{ id, parent, want string }{
		"its own":              {"order-17.a_b", "", "order-17.a_b"},
		"of its trace":         {"", "00-" + trace + "-00f067aa0ba902b7-01", trace},
		"both":                 {"order-17", "00-" + trace + "-00f067aa0ba902b7-01", "order-17"},
		"none":                 {"", "", ""},
		"a line break":         {"a\nlevel=ERROR", "", ""},
		"too long":             {strings.Repeat("x", 65), "", ""},
		"markup":               {"<b>", "", ""},
		"a trace of zeros":     {"", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", ""},
		"a trace that is none": {"", "00-" + strings.Repeat("z", 32) + "-00f067aa0ba902b7-01", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if test.id != "" {
			r.Header.Set(RequestID, test.id)
		}
		r.Header.Set("Traceparent", test.parent)
		w, seen := httptest.NewRecorder(), ""
		Numbered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get(RequestID) })).ServeHTTP(w, r)
		if seen != w.Header().Get(RequestID) || test.want != "" && seen != test.want || test.want == "" && !fresh.MatchString(seen) ||
			test.want == "" && seen == trace {
			t.Errorf("%s: the handler sees %q, the client %q", name, seen, w.Header().Get(RequestID))
		}
	}
}

// TestAccessLog: one line for each request, without secrets, and nothing while it is off.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	on := new(atomic.Bool)
	h := Numbered(Logged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetUser(r.Context(), "aki@example.com")
		w.WriteHeader(http.StatusTeapot)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "short")
	}), slog.New(slog.NewTextHandler(&log, nil)), on))
	send := func() {
		r := httptest.NewRequest(http.MethodPost, "/mcp?access_token=SECRET", nil)
		r.Header.Set("Authorization", "Bearer SECRET")
		r.Header.Set(RequestID, "order-17")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	send()
	if log.Len() > 0 {
		t.Errorf("while it is off: %s", &log)
	}
	on.Store(true)
	send()
	for _, want := range []string{"method=POST", "path=/mcp ", "status=418", "bytes=5", "request=order-17", "user=aki@example.com", "ms="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, &log)
		}
	}
	if strings.Contains(log.String(), "SECRET") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log has %s", &log)
	}
}

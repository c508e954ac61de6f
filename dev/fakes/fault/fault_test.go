package fault

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// a server that counts what reaches it and answers "whole answer".
func serve(t *testing.T, plan *Plan) (url string, reached *atomic.Int32) {
	t.Helper()
	reached = new(atomic.Int32)
	server := httptest.NewServer(plan.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.Header().Set("Server", "own")
		_, _ = io.WriteString(w, "whole answer")
	})))
	t.Cleanup(server.Close)
	return server.URL, reached
}

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

func request(t *testing.T, method, url string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		fault   Fault
		status  int // 0: no answer at all
		body    string
		broken  bool // the body ends early
		reached int32
	}{
		{"a status", Fault{Status: 503}, 503, "", false, 0},
		{"a body", Fault{Body: `{"ok":false}`}, 200, `{"ok":false}`, false, 0},
		{"only a header", Fault{Header: http.Header{"Server": {"planned"}}}, 200, "whole answer", false, 1},
		{"dropped before the work", Fault{Drop: true}, 0, "", false, 0},
		{"dropped after the work", Fault{Drop: true, After: true}, 0, "", false, 1},
		{"a status after the work", Fault{Status: 500, After: true}, 500, "", false, 1},
		{"cut short", Fault{Truncate: true}, 200, "whole ", true, 1},
		{"another method", Fault{Method: "POST", Status: 503}, 200, "whole answer", false, 1},
		{"another path", Fault{Path: "/v1/*", Status: 503}, 200, "whole answer", false, 1},
		{"one path segment", Fault{Path: "/a/*", Status: 503}, 200, "whole answer", false, 1},
		{"any path below", Fault{Path: "/a/**", Status: 503}, 503, "", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var plan Plan
			plan.Add(test.fault)
			url, reached := serve(t, &plan)
			answer, body, err := request(t, "GET", url+"/a/b/c")
			switch {
			case test.status == 0:
				if err == nil {
					t.Fatalf("status %d, want a closed connection", answer.StatusCode)
				}
			case answer == nil || (err != nil) != test.broken:
				t.Fatalf("error %v, want a broken body: %t", err, test.broken)
			case answer.StatusCode != test.status || body != test.body:
				t.Errorf("%d %q, want %d %q", answer.StatusCode, body, test.status, test.body)
			case test.fault.Header != nil && answer.Header.Get("Server") != "planned":
				t.Errorf("Server: %s", answer.Header.Get("Server"))
			}
			if got := reached.Load(); got != test.reached {
				t.Errorf("the server did its work %d times, want %d", got, test.reached)
			}
		})
	}
}

func TestOrderAndTimes(t *testing.T) {
	t.Parallel()
	var plan Plan
	plan.Add(Fault{Status: 429, Times: 2})
	plan.Add(Fault{Status: 503, Times: 1})
	url, _ := serve(t, &plan)
	for i, want := range []int{429, 429, 503, 200, 200} {
		answer, _, err := request(t, "POST", url)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("request %d: %v, %v, want %d", i, answer, err, want)
		}
	}
	plan.Add(Fault{Status: 500})
	plan.Clear()
	if answer, _, err := request(t, "GET", url); err != nil || answer.StatusCode != 200 {
		t.Errorf("after Clear: %v, %v", answer, err)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var plan Plan
		plan.Add(Fault{Delay: time.Minute})
		w, start := httptest.NewRecorder(), time.Now()
		plan.Wrap(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/",
			strings.NewReader("")))
		if got := time.Since(start); got != time.Minute || w.Code != 404 {
			t.Errorf("%d after %s", w.Code, got)
		}
	})
}

func TestPlanIsShared(t *testing.T) {
	t.Parallel()
	var (
		plan   Plan
		failed atomic.Int32
		group  sync.WaitGroup
	)
	handler := plan.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 8 {
		group.Go(func() {
			plan.Add(Fault{Status: 500, Times: 5})
			for range 100 {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
				if w.Code == 500 {
					failed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := failed.Load(); got != 40 {
		t.Errorf("%d requests failed, want each fault's five", got)
	}
}

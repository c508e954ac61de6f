package httpbroker

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func mustParse(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// to redirects everything.
func to(status int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

func TestRedirectMethods(t *testing.T) {
	t.Parallel()
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Saw", fmt.Sprintf("%s %q %q", r.Method, r.Header.Get("Content-Type"), body))
	})
	for _, c := range []struct {
		method string
		status int
		want   string
	}{
		{"GET", 301, `GET "text/x" ""`},
		{"HEAD", 303, `HEAD "text/x" ""`},
		{"POST", 301, `GET "" ""`},
		{"POST", 302, `GET "" ""`},
		{"POST", 303, `GET "" ""`},
		{"PUT", 302, `PUT "text/x" "b"`},
		{"PUT", 303, `GET "" ""`},
		{"POST", 307, `POST "text/x" "b"`},
		{"DELETE", 308, `DELETE "text/x" "b"`},
	} {
		t.Run(fmt.Sprint(c.method, c.status), func(t *testing.T) {
			s := serve(t, to(c.status, target.URL+"/end#fragment"))
			b := newBroker(t, nil, everything(s.URL), grant.HTTPRule{Name: "end", URL: target.URL,
				Methods: everything("").Methods})
			body := "b"
			if c.method == "GET" || c.method == "HEAD" {
				body = ""
			}
			a, err := do(t, b, &abi.HTTPRequest{Method: c.method, URL: s.URL,
				Headers: map[string][]string{"Content-Type": {"text/x"}}}, body)
			if err != nil || a.Header.Get("Saw") != c.want || a.URL != target.URL+"/end" {
				t.Errorf("saw %s at %s, %v; want %s", a.Header.Get("Saw"), a.URL, err, c.want)
			}
		})
	}
}

func TestRedirectsAreHeldAgainstTheRules(t *testing.T) {
	t.Parallel()
	inside := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the private server was reached") })
	_, port, _ := strings.Cut(inside.Listener.Addr().String(), ":")
	resolver := names{"evil.test": {"127.0.0.1"}}
	for name, c := range map[string]struct {
		location string
		code     string
		word     string
	}{
		"other host": {"https://other.test/x?token=1", abi.CodeNotGranted,
			"no grant for GET https://other.test/x"},
		"other path":      {"/b", abi.CodeNotGranted, "no grant"},
		"dots":            {"/a/%2e%2e/b", abi.CodeNotGranted, "no grant"},
		"other scheme":    {"ftp://a.test/", abi.CodeNetwork, "only http and https"},
		"password":        {"http://u:p@a.test/", abi.CodeNetwork, "user name or password"},
		"private address": {inside.URL, abi.CodeNotGranted, "loopback"},
		"private name":    {"http://evil.test:" + port, abi.CodeNotGranted, "loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, to(302, c.location))
			b := newBroker(t, &Options{Resolver: resolver}, everything(s.URL+"/a"), everything("http://*:"+port))
			_, err := get(t, b, s.URL+"/a")
			wantCode(t, err, c.code, c.word)
		})
	}
}

func TestRedirectLimit(t *testing.T) {
	t.Parallel()
	hops := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if hops++; r.URL.Path == "/10" {
			return
		}
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		http.Redirect(w, r, fmt.Sprintf("/%d", n+1), http.StatusFound)
	})
	b := newBroker(t, nil, everything(s.URL))
	if a := mustGet(t, b, s.URL+"/0"); a.Status != 200 {
		t.Errorf("status %d after 10 redirects", a.Status)
	}
	hops = 0
	_, err := get(t, b, s.URL+"/11")
	wantCode(t, err, abi.CodeLimit, "more than 10 redirects")
	if hops != 11 {
		t.Errorf("%d requests, want 11", hops)
	}
}

// The bodies of redirects are read, so that one connection serves the whole chain.
func TestRedirectsKeepTheConnection(t *testing.T) {
	t.Parallel()
	clients := map[string]bool{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		clients[r.RemoteAddr] = true
		if len(r.URL.Path) < 5 {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}
	})
	mustGet(t, newBroker(t, nil, everything(s.URL)), s.URL)
	if len(clients) != 1 {
		t.Errorf("%d connections, want 1", len(clients))
	}
}

func TestRedirectWithoutLocationIsTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) })
	if a := mustGet(t, newBroker(t, nil, everything(s.URL)), s.URL); a.Status != 302 {
		t.Errorf("status %d", a.Status)
	}
}

func TestCredentialsStayAtTheirOrigin(t *testing.T) {
	t.Parallel()
	var seen []http.Header
	record := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header)
			next(w, r)
		}
	}
	var first, second string
	s1 := serve(t, record(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			to(302, "/cross")(w, r)
		case "/cross":
			to(302, second)(w, r)
		}
	}))
	s2 := serve(t, record(func(w http.ResponseWriter, r *http.Request) { to(302, first+"/back")(w, r) }))
	first, second = s1.URL, s2.URL
	b := newBroker(t, nil, everything(first), grant.HTTPRule{Name: "second", URL: second})
	_, err := do(t, b, &abi.HTTPRequest{URL: first + "/same", Headers: map[string][]string{
		"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "X-Api-Key": {"k"},
		"Private-Token": {"t"}, "Accept": {"text/x"},
	}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4 {
		t.Fatalf("%d requests, want 4", len(seen))
	}
	for i, h := range seen {
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Private-Token"} {
			if got, want := h.Get(name) != "", i < 2; got != want {
				t.Errorf("request %d: %s sent: %v, want %v", i, name, got, want)
			}
		}
		if h.Get("Accept") != "text/x" {
			t.Errorf("request %d: Accept is missing", i)
		}
	}
}

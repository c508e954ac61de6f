package extism_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func client(t *testing.T, rules ...grant.HTTPRule) *httpbroker.Broker {
	t.Helper()
	b, err := httpbroker.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Test", r.Header.Get("X-Asked"))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	}))
	t.Cleanup(server.Close)
	plugin := load(t, setup{wasm: guest(t), http: client(t,
		grant.HTTPRule{Name: "api", URL: server.URL, Methods: []string{"GET", "POST"}})})
	got := text(t, plugin, "fetch", object{"text": server.URL + "/x?y", "method": "post", "body": "sent",
		"headers": object{"X-Asked": "v"}})
	if got != "418 v POST /x?y sent" {
		t.Errorf("got %q", got)
	}
	if got := text(t, plugin, "fetch", object{"text": server.URL}); got != "418  GET / " {
		t.Errorf("got %q", got)
	}
}

// TestHTTPObeysRules checks that http_request obeys the broker's rules, where that of the Extism SDK follows redirects
// anywhere.
func TestHTTPObeysRules(t *testing.T) {
	t.Parallel()
	hits := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		hits <- r.URL.Path
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	granted := grant.HTTPRule{Name: "api", URL: server.URL}
	localhost := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	for name, test := range map[string]struct {
		rules []grant.HTTPRule
		url   string
	}{
		"nothing granted":          {nil, server.URL},
		"another port":             {[]grant.HTTPRule{granted}, elsewhere.URL + "/port"},
		"redirect to another port": {[]grant.HTTPRule{granted}, server.URL + "?to=" + elsewhere.URL + "/redirect"},
		"redirect to another host": {[]grant.HTTPRule{granted}, server.URL + "?to=" + localhost + "/redirect"},
		"redirect to a private host": {[]grant.HTTPRule{granted, {Name: "any", URL: "http://*"}},
			server.URL + "?to=" + localhost + "/private"},
		"private address": {[]grant.HTTPRule{{Name: "any", URL: "http://*"}}, elsewhere.URL + "/address"},
		"another method":  {[]grant.HTTPRule{{Name: "api", URL: server.URL, Methods: []string{"POST"}}}, server.URL},
		"another scheme":  {[]grant.HTTPRule{granted}, "file:///etc/hostname"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{wasm: guest(t)}
			if test.rules != nil {
				s.http = client(t, test.rules...)
			}
			response, err := call(t, load(t, s), "fetch", object{"text": test.url})
			var refused *abi.Error
			if !errors.As(err, &refused) || refused.Code != abi.CodeNotGranted && refused.Code != abi.CodeInvalid {
				t.Errorf("%+v, %v", response, err)
			}
		})
	}
	t.Cleanup(func() {
		close(hits)
		for path := range hits {
			t.Errorf("the guest got to %s", path)
		}
	})
}

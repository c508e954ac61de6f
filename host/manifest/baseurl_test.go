package manifest_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
)

func TestParseBaseURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://api.example.com":            "https://api.example.com/",
		"HTTPS://API.Example.COM:443/v1":     "https://api.example.com/v1",
		"http://example.com:80/":             "http://example.com/",
		"http://example.com:8080/a/b/":       "http://example.com:8080/a/b/",
		"https://*.example.com/":             "https://*.example.com/",
		"https://*":                          "https://*/",
		"http://[0:0::1]:8080":               "http://[::1]:8080/",
		"http://127.0.0.1":                   "http://127.0.0.1/",
		"https://xn--eckwd4c7c.example/a~b":  "https://xn--eckwd4c7c.example/a~b",
		"":                                   "is missing",
		"example.com":                        "must start with",
		"ftp://example.com":                  "must start with",
		"https://":                           "must name a host",
		"https://user@example.com":           "must not have a user",
		"https://example.com/?a=b":           "must not have a user, a query",
		"https://example.com/?":              "must not have a user, a query",
		"https://example.com/#":              "must not have a user, a query or a fragment",
		"https://例え.example":                 "must be a URL in ASCII",
		"https://example.com:0":              "must have a port",
		"https://example.com:70000":          "must have a port",
		"https://example.com:":               "must have a port",
		"https://a.*.example":                "must name a host",
		"https://**.example":                 "must name a host",
		"https://*.":                         "must name a host",
		"https://*.*":                        "must name a host",
		"https://example.com./":              "must name a host",
		"https://[::1%25eth0]/":              "must have a valid IPv6",
		"https://example.com/a/../b":         "must have a plain path",
		"https://example.com//b":             "must have a plain path",
		"https://example.com/a%2fb":          "must have a plain path",
		"https://example.com/%2e%2e/b":       "must have a plain path",
		"https://example.com/*":              "must have a plain path",
		"https://exa mple.com/":              "must be a URL in ASCII",
		"https://" + strings.Repeat("a", 64): "must name a host",
	} {
		u, err := manifest.ParseBaseURL(url)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = u.String()
		}
		if !strings.HasPrefix(got, want) || err == nil && got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outer, inner string
		want         bool
	}{
		{"https://a.example/", "https://a.example/v1", true},
		{"https://a.example/v1", "https://a.example/v1/", true},
		{"https://a.example/v1/", "https://a.example/v1", true},
		{"https://a.example/v1", "https://a.example/v10", false},
		{"https://a.example/v1", "https://a.example/", false},
		{"https://a.example/", "http://a.example/", false},
		{"https://a.example/", "https://a.example:8443/", false},
		{"https://a.example:443/", "https://A.example/", true},
		{"https://*.example.com/", "https://a.b.example.com/", true},
		{"https://*.example.com/", "https://*.b.example.com/", true},
		{"https://*.example.com/", "https://example.com/", false},
		{"https://*.example.com/", "https://badexample.com/", false},
		{"https://a.example.com/", "https://*.example.com/", false},
		{"https://*/", "https://anything.example/x", true},
		{"https://*/", "https://*.example/", true},
		{"https://*.example/", "https://*/", false},
	} {
		outer, err := manifest.ParseBaseURL(c.outer)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := manifest.ParseBaseURL(c.inner)
		if err != nil {
			t.Fatal(err)
		}
		if got := manifest.Covers(outer, inner); got != c.want {
			t.Errorf("%s covers %s: got %v", c.outer, c.inner, got)
		}
	}
}

package auth

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/bearer"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, hash := bearer.New()
	oauth := OAuth{Resource: "https://hako.example.com/mcp", Issuers: []Issuer{{URL: "https://issuer.example.com"}}}
	with := func(change func(*OAuth)) Options {
		changed := oauth
		changed.Issuers = []Issuer{oauth.Issuers[0]}
		change(&changed)
		return Options{OAuth: &changed}
	}
	for name, options := range map[string]Options{
		"nothing":             {},
		"no name":             {Tokens: []bearer.Token{{Hash: hash}}},
		"no hash":             {Tokens: []bearer.Token{{Name: "ci"}}},
		"hash without kind":   {Tokens: []bearer.Token{{Name: "ci", Hash: strings.TrimPrefix(hash, "sha256:")}}},
		"short hash":          {Tokens: []bearer.Token{{Name: "ci", Hash: hash[:len(hash)-2]}}},
		"a token for a hash":  {Tokens: []bearer.Token{{Name: "ci", Hash: "hako_abc"}}},
		"scope with space":    {Tokens: []bearer.Token{{Name: "ci", Hash: hash}}, Scopes: []string{"a b"}},
		"no issuer":           with(func(o *OAuth) { o.Issuers = nil }),
		"no resource":         with(func(o *OAuth) { o.Resource = "" }),
		"plain resource":      with(func(o *OAuth) { o.Resource = "http://hako.example.com/mcp" }),
		"resource with query": with(func(o *OAuth) { o.Resource += "?x" }),
		"plain issuer":        with(func(o *OAuth) { o.Issuers[0].URL = "http://issuer.example.com" }),
		"issuer without URL":  with(func(o *OAuth) { o.Issuers[0].URL = "" }),
		"plain keys":          with(func(o *OAuth) { o.Issuers[0].Keys = "http://issuer.example.com/keys" }),
	} {
		if _, err := New(options); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "hako_abc") {
			t.Errorf("%s: the error holds a token: %v", name, err)
		}
	}
	if _, err := New(Options{OAuth: &oauth}); err != nil {
		t.Error(err)
	}
}

func TestCheckExposure(t *testing.T) {
	t.Parallel()
	_, hash := bearer.New()
	opened := mustNew(t, Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash}}})
	for addr, safe := range map[string]bool{
		"127.0.0.1:8420": true, "localhost:0": true, "[::1]:8420": true, "127.9.9.9:1": true,
		":8420": false, "0.0.0.0:8420": false, "[::]:8420": false, "192.168.1.5:8420": false,
		"hako.example.com:80": false,
	} {
		if err := CheckExposure(addr, nil); (err == nil) != safe {
			t.Errorf("%s without authentication: %v", addr, err)
		} else if err != nil && !strings.Contains(err.Error(), "hako token create") {
			t.Errorf("%s: the error does not say what to do: %v", addr, err)
		}
		if err := CheckExposure(addr, opened); err != nil {
			t.Errorf("%s with authentication: %v", addr, err)
		}
	}
	if err := CheckExposure("8420", opened); err == nil {
		t.Error("an address without a port: no error")
	}
}

func mustNew(t *testing.T, options Options) *Auth {
	t.Helper()
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

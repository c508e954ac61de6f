package grant_test

import (
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// TestMovedConfig: what the address under a configKey becomes when the consent names another one.
func TestMovedConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asked, byDefault, chosen string
		set                      any
		want, moved              any
	}{
		"as asked":         {"https://a.example/v1/", "https://a.example/v1/x", "", nil, nil, ""},
		"another server":   {"https://a.example/v1/", "", "http://b.example/", nil, "http://b.example/", "https://a.example/v1/"},
		"below":            {"https://a.example/v1/", "https://a.example/v1/x/y", "http://b.example/m", nil, "http://b.example/m/x/y", "https://a.example/v1/"},
		"with a slash":     {"https://a.example/v1/", "https://a.example/v1/", "http://b.example/m", nil, "http://b.example/m/", "https://a.example/v1/"},
		"without a slash":  {"https://a.example/v1/", "https://a.example/v1", "http://b.example/m/", nil, "http://b.example/m", "https://a.example/v1/"},
		"the operator's":   {"https://a.example/v1/", "https://a.example/v1/x", "http://b.example/", "http://b.example/", "http://b.example/", "https://a.example/v1/"},
		"a part of it":     {"https://a.example/", "https://a.example/v1", "https://a.example/v1/", nil, nil, ""},
		"another part":     {"https://a.example/", "https://a.example/v1", "https://a.example/v2/", nil, "https://a.example/v2/", ""},
		"a host of a wild": {"https://*.example/", "", "https://eu.example/", nil, "https://eu.example/", ""},
		"a wild":           {"https://*.example/", "", "https://*.eu.example/", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := manifest.ConfigKey{Type: "url"}
			if test.byDefault != "" {
				key.Default = test.byDefault
			}
			m := &manifest.Manifest{Name: "p", Config: map[string]manifest.ConfigKey{"base": key},
				Permissions: manifest.Permissions{HTTP: []manifest.HTTPPermission{
					{Name: "plain", URL: "https://plain.example"}, {Name: "api", URL: test.asked, ConfigKey: "base"}}}}
			consent := &grant.Consent{Name: "p", HTTP: map[string]grant.HTTPMapping{"api": {URL: test.chosen}}}
			config := map[string]any{}
			if test.set != nil {
				config["base"] = test.set
			}
			grants, err := grant.Resolve(m, consent, config, grant.Roots{})
			if err != nil {
				t.Fatal(err)
			}
			if got := grants.HTTP[1].Asked; got != test.moved {
				t.Errorf("moved from %q, want %q", got, test.moved)
			}
			if got := grants.Config(m, config)["base"]; got != test.want {
				t.Errorf("configured %v, want %v", got, test.want)
			}
		})
	}
}

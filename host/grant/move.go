package grant

import (
	"maps"
	"net/url"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// moved reports whether requests to asked have to be sent to granted: granted names one host, and is not merely a part
// of asked.
func moved(asked, granted string) bool {
	from, err := manifest.ParseBaseURL(asked)
	if err != nil {
		return false
	}
	to, err := manifest.ParseBaseURL(granted)
	return err == nil && !strings.HasPrefix(to.Host, "*") && !manifest.Covers(from, to)
}

// Config returns config, the values that the operator set, with the granted address under the configKey of each
// permission whose address the consent changes. Values that the operator set stay.
func (g Grants) Config(m *manifest.Manifest, config map[string]any) map[string]any {
	config = maps.Clone(config)
	for i, p := range m.Permissions.HTTP {
		if p.ConfigKey == "" || i >= len(g.HTTP) || g.HTTP[i].URL == p.URL || config[p.ConfigKey] != nil {
			continue
		}
		byDefault, _ := m.Config[p.ConfigKey].Default.(string)
		if address := g.HTTP[i].address(byDefault); address != "" {
			if config == nil {
				config = map[string]any{}
			}
			config[p.ConfigKey] = address
		}
	}
	return config
}

// address returns the value for a configuration key that holds the rule's address, or "" if its default is right.
func (r HTTPRule) address(byDefault string) string {
	to, err := manifest.ParseBaseURL(r.URL)
	if err != nil || strings.HasPrefix(to.Host, "*") {
		return ""
	}
	at, err := manifest.ParseBaseURL(byDefault)
	switch {
	case err != nil:
		return r.URL
	case r.Asked != "":
		return move(at, r.Asked, to)
	case manifest.Covers(to, at):
		return ""
	}
	return r.URL
}

// move returns what corresponds under to to an address under the base URL from.
func move(at *url.URL, from string, to *url.URL) string {
	base, err := manifest.ParseBaseURL(from)
	if err != nil {
		return to.String()
	}
	moved := *to
	moved.Path = strings.TrimSuffix(to.Path, "/") + strings.TrimPrefix(at.Path, strings.TrimSuffix(base.Path, "/"))
	return moved.String()
}

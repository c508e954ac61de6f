package config

import (
	"net/url"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Entry is one value of the effective configuration, as it may be shown: secrets are left out.
type Entry struct {
	Key string `json:"key"`
	// Value is as one would write it in the file; empty where nothing is set.
	Value string `json:"value"`
	// Origin is "flag --NAME", "env NAME", FILE:LINE or OriginDefault.
	Origin string `json:"origin"`
	// Default is the default, empty for settings without one and for paths.
	Default string `json:"default,omitempty"`
}

// Entries lists all values: the settings in their usual order, then what single plugins, mounts and tokens have.
func (c *Config) Entries() []Entry {
	var entries []Entry
	for _, s := range c.settings {
		entries = append(entries, Entry{s.key, s.text(), c.origins[s.key], s.defaultText()})
	}
	return append(entries, c.nested...)
}

// Origin returns the origin of a key's value, as in Entry.
func (c *Config) Origin(key string) string { return c.origins[key] }

var secretName = lazyregexp.New(`(?i)token|secret|password|passphrase|credential|api_?key`)

// redacted is text, the value of a plugin's configuration key, as it may be shown. Configuration is no place for
// secrets, but people put them there.
func redacted(name string, value any, text string) string {
	if secretName().MatchString(name) {
		return "(redacted)"
	}
	if s, ok := value.(string); ok {
		return withoutPassword(s)
	}
	return text
}

// withoutPassword hides the password in text, if it is a URL that has one.
func withoutPassword(text string) string {
	if store.IsURL(text) {
		return store.Redacted(text)
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

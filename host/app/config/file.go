package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 1 << 20

// read reads the file, or the built-in default where there is none, into c, and notes the origins of what is set. Paths
// in it start at dir.
func (c *Config) read(text []byte, dir string) error {
	name := "built-in default"
	if c.File != "" {
		name = filepath.Base(c.File)
	}
	err := strictyaml.Read(text, maxFile, reader{config: c, name: name, dir: dir}.root, nil)
	c.resolve(dir)
	var list *strictyaml.Error
	if !errors.As(err, &list) {
		return err
	}
	var lines []string
	for _, p := range list.Problems {
		separator := ":"
		if p.Column == 0 {
			separator = ": "
		}
		lines = append(lines, name+separator+p.String())
	}
	if list.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", list.Omitted))
	}
	return fmt.Errorf("configuration: %s", strings.Join(lines, "\n"))
}

// reader reads one file.
type reader struct {
	config    *Config
	name, dir string
}

// root reads the whole file: the settings, and what is not a single value.
func (r reader) root(v strictyaml.Value) {
	readers := map[string]func(strictyaml.Value){
		"shipped.mounts":          r.mounts,
		"http.auth.tokens":        r.tokens,
		"http.auth.oauth.issuers": r.issuers,
		"http.auth.proxy.require": r.requiredClaims,
		"audit.fields":            r.auditFields,
		"plugin":                  r.plugins,
		"registries":              r.registries,
		"tenants":                 r.tenants,
		"credentials":             r.credentials("credentials.", &r.config.Credentials),
		"llm.models":              r.models,
		"slack.workspaces":        r.slackWorkspaces,
		"console.tokens":          r.consoleTokens,
		"console.oidc.roles":      r.consoleRoles,
		"signers":                 r.signers,
		"toolsets":                r.toolsets,
	}
	for _, s := range r.config.settings {
		read := s.read
		if source, ok := s.value.(*secret.Source); ok {
			read = r.requiredSource(source)
		}
		readers[s.key] = func(v strictyaml.Value) {
			read(v)
			r.config.origins[s.key] = r.at(v)
		}
	}
	v.Object(nest(readers))
}

// nest turns readers by dotted key into the fields of nested objects.
func nest(readers map[string]func(strictyaml.Value)) strictyaml.Fields {
	fields, inner := strictyaml.Fields{}, map[string]map[string]func(strictyaml.Value){}
	for key, read := range readers {
		first, rest, nested := strings.Cut(key, ".")
		if !nested {
			fields[first] = read
			continue
		}
		if inner[first] == nil {
			inner[first] = map[string]func(strictyaml.Value){}
		}
		inner[first][rest] = read
	}
	for first, readers := range inner {
		fields[first] = func(v strictyaml.Value) { v.Object(nest(readers)) }
	}
	return fields
}

func (r reader) at(v strictyaml.Value) string { return fmt.Sprintf("%s:%d", r.name, v.Line()) }

// note remembers a value that is not a setting's, for Entries.
func (r reader) note(key, value string, v strictyaml.Value) {
	r.config.nested = append(r.config.nested, Entry{Key: key, Value: value, Origin: r.at(v)})
}

func (r reader) mounts(v strictyaml.Value) {
	v.Map(func(mount string, v strictyaml.Value) {
		var path string
		strictyaml.String(&path)(v)
		if path == "" {
			v.Problem("must name a directory")
		}
		r.config.ShippedMounts[mount] = absolute(path, r.dir)
		r.note("shipped.mounts."+mount, path, v)
	})
}

func (r reader) auditFields(v strictyaml.Value) {
	v.Map(func(tool string, v strictyaml.Value) {
		var fields []string
		strictyaml.Strings(&fields)(v)
		r.config.Audit.Fields[tool] = fields
		r.note("audit.fields."+tool, "["+strings.Join(fields, ", ")+"]", v)
	})
}

func (r reader) tokens(v strictyaml.Value) {
	v.List(func(_ int, v strictyaml.Value) {
		var t bearer.Token
		v.Object(strictyaml.Fields{
			"name":    strictyaml.String(&t.Name),
			"hash":    strictyaml.String(&t.Hash),
			"user":    strictyaml.String(&t.User),
			"tenant":  strictyaml.String(&t.Tenant),
			"scopes":  strictyaml.Strings(&t.Scopes),
			"expires": expiry(&t.Expires),
		})
		r.config.HTTP.Auth.Tokens = append(r.config.HTTP.Auth.Tokens, t)
		r.note("http.auth.tokens", t.Name, v)
	})
}

func (r reader) issuers(v strictyaml.Value) {
	v.List(func(_ int, v strictyaml.Value) {
		var i auth.Issuer
		v.Object(strictyaml.Fields{"url": strictyaml.String(&i.URL), "keys": strictyaml.String(&i.Keys)})
		r.config.HTTP.OAuth.Issuers = append(r.config.HTTP.OAuth.Issuers, i)
		r.note("http.auth.oauth.issuers", i.URL, v)
	})
}

// requiredClaims reads the claims that accounts must have, each with one of the listed values.
func (r reader) requiredClaims(v strictyaml.Value) {
	require := map[string][]string{}
	v.Map(func(claim string, v strictyaml.Value) {
		var values []string
		strictyaml.Strings(&values)(v)
		require[claim] = values
		r.note("http.auth.proxy.require."+claim, strings.Join(values, ", "), v)
	})
	r.config.HTTP.Login.Provider.Require = require
}

// expiry reads a date, whose end is meant, or a time.
func expiry(dst *time.Time) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		if !ok {
			return
		}
		var err error
		if *dst, err = ParseExpiry(text); err != nil {
			v.Problem("%v", err)
		}
	}
}

// ParseExpiry parses a date, whose end is meant, or a time.
func ParseExpiry(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = errors.New(`must be a date or a time, such as "2027-01-31" or "2027-01-31T12:00:00Z"`)
	}
	return moment, err
}

func (r reader) plugins(v strictyaml.Value) {
	v.Map(func(name string, v strictyaml.Value) {
		key := "plugin." + name
		s := host.Settings{Config: map[string]any{}}
		readers := map[string]func(strictyaml.Value){
			"prefix": func(v strictyaml.Value) {
				strictyaml.String(&s.Prefix)(v)
				r.note(key+".prefix", s.Prefix, v)
			},
			"state": func(v strictyaml.Value) {
				manifest.ReadState(&s.State)(v)
				r.note(key+".state", string(s.State), v)
			},
			"config": func(v strictyaml.Value) { r.pluginConfig(key+".config.", s.Config, v) },
			"http":   r.rules(key+".http.", &s.HTTP),
		}
		for _, limit := range limits("limits.", &s.Limits) {
			readers[limit.key] = func(v strictyaml.Value) {
				limit.read(v)
				r.note(key+"."+limit.key, limit.text(), v)
			}
		}
		v.Object(nest(readers))
		r.config.Plugin[name] = s
	})
}

// maxTenant is the longest name of a tenant, in bytes.
const maxTenant = 200

func (r reader) tenants(v strictyaml.Value) {
	v.Map(func(name string, v strictyaml.Value) {
		if name == "" || len(name) > maxTenant || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, visible.Hidden) {
			v.Problem("the name of a tenant must be 1 to %d bytes, without characters that are not visible", maxTenant)
		}
		key := "tenants." + name
		r.note(key, "", v)
		t := host.Tenant{Config: map[string]map[string]any{}}
		var credentials map[string]credential.Spec
		v.Object(strictyaml.Fields{
			"plugin":      func(v strictyaml.Value) { r.tenantPlugins(key+".plugin.", t, v) },
			"credentials": r.credentials(key+".credentials.", &credentials),
		})
		r.config.Tenants[name] = t
		r.config.TenantCredentials[name] = credentials
	})
}

func (r reader) tenantPlugins(prefix string, t host.Tenant, v strictyaml.Value) {
	v.Map(func(plugin string, v strictyaml.Value) {
		config := map[string]any{}
		v.Object(strictyaml.Fields{
			"config": func(v strictyaml.Value) { r.pluginConfig(prefix+plugin+".config.", config, v) },
		})
		t.Config[plugin] = config
	})
}

func (r reader) pluginConfig(prefix string, config map[string]any, v strictyaml.Value) {
	v.Map(func(name string, v strictyaml.Value) {
		text := v.JSON()
		if text == nil {
			return // reported
		}
		if text[0] == '{' {
			config[name] = r.secretValue(prefix+name, v)
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			v.Problem("%v", err)
		}
		config[name] = value
		r.note(prefix+name, redacted(name, value, string(text)), v)
	})
}

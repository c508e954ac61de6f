// Package inspect describes plugins without running them: their state, what they declare and ask for, and what they are
// granted.
//
// List, GrantsOf and New return values that commands print as JSON or as text.
package inspect

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// Grants are the grants of a plugin in service, as JSON.
type Grants struct {
	Plugin string       `json:"plugin"`
	HTTP   []HTTPGrant  `json:"http"`
	Mounts []MountGrant `json:"mounts"`
	SQL    *SQLGrant    `json:"sql,omitempty"`
	Exec   *ExecGrant   `json:"exec,omitempty"`
	// Tools are patterns for the tools that it may call.
	Tools []string `json:"tools,omitempty"`
}

// HTTPGrant is a permission for HTTP requests.
type HTTPGrant struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Methods []string `json:"methods"`
	Paths   []string `json:"paths,omitempty"`
	Private bool     `json:"private,omitempty"`
	// Credential is the name of the credential that hako applies.
	Credential string `json:"credential,omitempty"`
}

// MountGrant is a mounted folder.
type MountGrant struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"`
	Access string   `json:"access"`
	Deny   []string `json:"deny,omitempty"`
	Quota  int64    `json:"quota,omitempty"`
}

// SQLGrant is a private database.
type SQLGrant struct {
	Migrations int   `json:"migrations"`
	Quota      int64 `json:"quota"`
}

// ExecGrant is a permission to run programs.
type ExecGrant struct {
	Programs   []string `json:"programs"`
	Env        []string `json:"env,omitempty"`
	Connect    []string `json:"connect,omitempty"`
	Unconfined bool     `json:"unconfined,omitempty"`
}

// GrantsOf returns the grants of the plugins in service.
func GrantsOf(plugins []host.Status) []Grants {
	list := []Grants{}
	for _, p := range plugins {
		if p.Serving != "" {
			list = append(list, newGrants(p.Name, p.Grants))
		}
	}
	return list
}

func newGrants(plugin string, grants grant.Grants) Grants {
	g := Grants{Plugin: plugin, HTTP: []HTTPGrant{}, Mounts: []MountGrant{}}
	for _, rule := range grants.HTTP {
		methods := rule.Methods
		if len(methods) == 0 {
			methods = []string{"GET", "HEAD"}
		}
		g.HTTP = append(g.HTTP, HTTPGrant{rule.Name, rule.URL, methods, rule.Paths, rule.Private, rule.Credential})
	}
	for _, mount := range grants.Mounts {
		access := manifest.ReadOnly
		if mount.Write {
			access = manifest.ReadWrite
		}
		g.Mounts = append(g.Mounts, MountGrant{mount.Name, mount.Path, access, mount.Deny, mount.Quota})
	}
	if sql := grants.SQL; sql != nil {
		g.SQL = &SQLGrant{len(sql.Migrations), sql.Quota}
	}
	g.Tools = grants.Tools
	if exec := grants.Exec; exec != nil {
		g.Exec = &ExecGrant{exec.Programs, exec.Env, exec.Connect, exec.Unconfined}
	}
	return g
}

// Status is the state of a plugin, as JSON.
type Status struct {
	Name    string     `json:"name"`
	Version string     `json:"version,omitempty"`
	State   host.State `json:"state"`
	Reason  string     `json:"reason,omitempty"`
	Path    string     `json:"path"`
	Digest  string     `json:"digest,omitempty"`
	Serving string     `json:"serving,omitempty"`
	Signer  string     `json:"signer,omitempty"`
	Tools   []string   `json:"tools"`
}

// List returns the states of plugins.
func List(plugins []host.Status, signers Signers) []Status {
	list := []Status{}
	for _, p := range plugins {
		list = append(list, Status{p.Name, p.Version, p.State, p.Reason, p.Path, p.Digest, p.Serving, signers.Text(&p),
			append([]string{}, p.Tools...)})
	}
	return list
}

// Report describes a plugin without running it.
type Report struct {
	Status
	Description string            `json:"description"`
	License     string            `json:"license"`
	Imports     []string          `json:"imports"`
	Permissions []string          `json:"permissions"`
	Grants      Grants            `json:"grants"`
	Config      []ConfigKey       `json:"config"`
	Limits      map[string]string `json:"limits"`
	Offers      []string          `json:"offers"`
	// NoTools are the exported functions of a component that cannot be tools, each with the reason.
	NoTools []string `json:"noTools"`

	// Given are the grants in plain words.
	Given []string `json:"-"`
}

// ConfigKey is a key of a plugin's configuration.
type ConfigKey struct {
	Key         string `json:"key"`
	Type        string `json:"type"`
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

// New reports on a plugin under a configuration. shipped are the plugins that come with the program. It fails if the
// plugin's manifest or code cannot be read.
func New(p *host.Status, c *config.Config, shipped []shipped.Plugin) (*Report, error) {
	if p.Manifest == nil {
		return nil, fmt.Errorf("%s is %s: %s", p.Path, p.State, p.Reason)
	}
	signers, err := LoadSigners(c)
	if err != nil {
		return nil, err
	}
	m, locale := p.Manifest, c.Locale
	report := &Report{
		Status:      List([]host.Status{*p}, signers)[0],
		Description: m.Description.In(locale),
		License:     m.License,
		Permissions: grant.Explain(m.Permissions, locale),
		Grants:      newGrants(p.Name, p.Grants),
		Given:       p.Grants.Explain(locale),
		Offers:      Offers(m),
		Config:      []ConfigKey{},
		Limits:      c.Plugin[p.Name].Limits.Or(c.Limits).Or(m.Limits).Or(manifest.DefaultLimits).Texts(),
	}
	module, err := readModule(p, c, shipped)
	if err != nil {
		return nil, err
	}
	report.Imports, report.NoTools = imports(module), noTools(module)
	for _, name := range slices.Sorted(maps.Keys(m.Config)) {
		k := m.Config[name]
		report.Config = append(report.Config, ConfigKey{name, k.Type, k.Default, k.Required, k.Description.In(locale)})
	}
	return report, nil
}

// readModule reads the plugin's code.
func readModule(p *host.Status, c *config.Config, shipped []shipped.Plugin) (*wasmfile.Module, error) {
	for _, plugin := range shipped {
		if plugin.File == p.Path && plugin.Module != nil {
			return plugin.Module, nil
		}
	}
	wasm, err := manifest.ReadFile(p.Path, c.MaxPluginSize)
	if err != nil {
		return nil, err
	}
	return wasmfile.Read(wasm)
}

// imports lists the modules that the plugin's code imports.
func imports(module *wasmfile.Module) []string {
	names := map[string]bool{}
	for _, i := range module.Imports {
		names[i.Module] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// noTools lists the functions of a component that cannot be tools.
func noTools(module *wasmfile.Module) []string {
	list := []string{}
	if module.Component == nil {
		return list
	}
	for _, f := range tool.Functions(module.Component) {
		if f.Reason != "" {
			list = append(list, f.Export+": "+f.Reason)
		}
	}
	return list
}

// Offers lists what a manifest declares: tools, resources and prompts.
func Offers(m *manifest.Manifest) []string {
	var list []string
	for _, t := range m.Tools {
		list = append(list, "tool "+t.Name)
	}
	for _, r := range m.Resources {
		list = append(list, "resource "+r.URI)
	}
	for _, t := range m.ResourceTemplates {
		list = append(list, "resources "+t.URITemplate)
	}
	for _, p := range m.Prompts {
		list = append(list, "prompt "+p.Name)
	}
	return list
}

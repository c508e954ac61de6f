package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// pluginGrants is what one plugin in service may do.
type pluginGrants struct {
	Plugin string         `json:"plugin"`
	HTTP   []httpGrant    `json:"http"`
	Mounts []mountedGrant `json:"mounts"`
	SQL    *sqlGrant      `json:"sql,omitempty"`
	Exec   *execGrant     `json:"exec,omitempty"`
}

type httpGrant struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Methods []string `json:"methods"`
	Paths   []string `json:"paths,omitempty"`
	Private bool     `json:"private,omitempty"`
	// Credential is the name of the one that is sent along.
	Credential string `json:"credential,omitempty"`
}

type mountedGrant struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"`
	Access string   `json:"access"`
	Deny   []string `json:"deny,omitempty"`
	Quota  int64    `json:"quota,omitempty"`
}

type sqlGrant struct {
	Migrations int   `json:"migrations"`
	Quota      int64 `json:"quota"`
}

type execGrant struct {
	Programs   []string `json:"programs"`
	Env        []string `json:"env,omitempty"`
	Ports      []uint16 `json:"ports,omitempty"`
	Unconfined bool     `json:"unconfined,omitempty"`
}

// grantsOf lists the grants of the plugins in service.
func grantsOf(plugins []host.Status) []pluginGrants {
	list := []pluginGrants{}
	for _, p := range plugins {
		if p.Serving != "" {
			list = append(list, newPluginGrants(p.Name, p.Grants))
		}
	}
	return list
}

func newPluginGrants(plugin string, grants grant.Grants) pluginGrants {
	g := pluginGrants{Plugin: plugin, HTTP: []httpGrant{}, Mounts: []mountedGrant{}}
	for _, rule := range grants.HTTP {
		methods := rule.Methods
		if len(methods) == 0 {
			methods = []string{"GET", "HEAD"}
		}
		g.HTTP = append(g.HTTP, httpGrant{rule.Name, rule.URL, methods, rule.Paths, rule.Private, rule.Credential})
	}
	for _, mount := range grants.Mounts {
		access := manifest.ReadOnly
		if mount.Write {
			access = manifest.ReadWrite
		}
		g.Mounts = append(g.Mounts, mountedGrant{mount.Name, mount.Path, access, mount.Deny, mount.Quota})
	}
	if sql := grants.SQL; sql != nil {
		g.SQL = &sqlGrant{len(sql.Migrations), sql.Quota}
	}
	if exec := grants.Exec; exec != nil {
		g.Exec = &execGrant{exec.Programs, exec.Env, exec.Ports, exec.Unconfined}
	}
	return g
}

// lines says the grants for people, one per line.
func (g pluginGrants) lines() []string {
	var lines []string
	for _, h := range g.HTTP {
		line := fmt.Sprintf("http %s: %s %s", h.Name, strings.Join(h.Methods, ", "), h.URL)
		if len(h.Paths) > 0 {
			line += ", paths " + strings.Join(h.Paths, ", ")
		}
		if h.Private {
			line += ", private addresses too"
		}
		if h.Credential != "" {
			line += ", with the credential " + h.Credential
		}
		lines = append(lines, line)
	}
	for _, m := range g.Mounts {
		line := fmt.Sprintf("files /%s: %s, %s", m.Name, m.Path, m.Access)
		if len(m.Deny) > 0 {
			line += ", but " + strings.Join(m.Deny, ", ")
		}
		if m.Quota > 0 {
			line += ", at most " + strictyaml.FormatSize(m.Quota)
		}
		lines = append(lines, line)
	}
	if g.SQL != nil {
		lines = append(lines, fmt.Sprintf("sql: a database of its own for each tenant, at most %s", strictyaml.FormatSize(g.SQL.Quota)))
	}
	if g.Exec != nil {
		lines = append(lines, g.Exec.line())
	}
	if len(lines) == 0 {
		return []string{"nothing outside of its sandbox"}
	}
	return lines
}

func (g *execGrant) line() string {
	line := "commands: " + strings.Join(g.Programs, ", ")
	if slices.Contains(g.Programs, manifest.AnyProgram) {
		line = "commands: every program that is installed"
	}
	line += ", in these folders (without their quotas; not in those that hide a part)"
	if len(g.Env) > 0 {
		line += ", with the variables " + strings.Join(g.Env, ", ")
	}
	if len(g.Ports) == 0 {
		line += ", no network"
	} else {
		line += fmt.Sprintf(", network: TCP ports %v of any host, and UDP", g.Ports)
	}
	if g.Unconfined {
		line += ", also where the kernel cannot hold them"
	}
	return line
}

package main

import (
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
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
	Connect    []string `json:"connect,omitempty"`
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
		g.Exec = &execGrant{exec.Programs, exec.Env, exec.Connect, exec.Unconfined}
	}
	return g
}

package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
	"github.com/hako-run/hako/internal/strictyaml"
)

// registries reads the settings for single registries. The keys become registry.CanonicalRegistry.
func (r reader) registries(v strictyaml.Value) {
	r.config.Registries = map[string]registry.Host{}
	named := map[string]bool{}
	v.Map(func(host string, v strictyaml.Value) {
		var h registry.Host
		v.Object(strictyaml.Fields{"mirrors": strictyaml.Strings(&h.Mirrors), "ca": strictyaml.String(&h.CA),
			"tokenServers": strictyaml.Strings(&h.TokenServers)})
		if err := h.Check(host); err != nil {
			v.Problem("%v", err)
		} else if host, _ = registry.CanonicalRegistry(host); named[host] {
			v.Problem("the registry %s has settings under another name too: keep one of them", host)
		}
		named[host] = true
		h.CA = absolute(h.CA, r.dir)
		r.config.Registries[host] = h
		r.note("registries."+host, strings.TrimSpace(strings.Join(slices.Concat(h.Mirrors, h.TokenServers), ", ")+" "+h.CA), v)
	})
}

// Registry returns the options of clients for registries. public is for people who may not reach the operator's network
// through hako, except for the registries that have settings or an index.
func (c *Config) Registry(public bool) registry.Options {
	registries := map[string]registry.Host{}
	for _, location := range c.Index.Plugins {
		if r, err := registry.ParseReference(location); err == nil && index.IsOCI(location) {
			registries[r.Registry] = registry.Host{}
		}
	}
	maps.Copy(registries, c.Registries)
	return registry.Options{Proxy: c.ProxyURL(), Registries: registries, MaxSize: c.MaxPluginSize, Public: public,
		AuthFiles: authFiles()}
}

// authFiles are the files where Podman and Docker keep credentials for registries, in the order in which Podman reads
// them (containers-auth.json(5)).
func authFiles() []string {
	if named := os.Getenv("REGISTRY_AUTH_FILE"); named != "" {
		return []string{named}
	}
	var files []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		files = append(files, filepath.Join(dir, "containers", "auth.json"))
	}
	home, err := os.UserHomeDir()
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "containers", "auth.json"))
	} else if err == nil {
		files = append(files, filepath.Join(home, ".config", "containers", "auth.json"))
	}
	docker := os.Getenv("DOCKER_CONFIG")
	if docker == "" && err == nil {
		docker = filepath.Join(home, ".docker")
	}
	if docker != "" {
		files = append(files, filepath.Join(docker, "config.json"))
	}
	return files
}

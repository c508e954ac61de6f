package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
)

// Index configures where plugins and upstream servers can be searched for.
type Index struct {
	// Plugins are the locations of indexes of plugins: oci:// references, https URLs and absolute paths.
	Plugins []string
	// Servers is the base URL of a registry of MCP servers; empty means none.
	Servers string
}

func (i *Index) table() []setting {
	return []setting{
		{key: "index.plugins", value: &i.Plugins},
		{key: "index.servers", value: &i.Servers, rule: checkRegistry},
	}
}

func checkRegistry(text string) error {
	if text == "" {
		return nil
	}
	return index.CheckRegistry(text)
}

// resolveIndexes checks the locations of indexes, and makes relative paths start at the configuration file's directory.
func (c *Config) resolveIndexes() error {
	var shown []string
	for i, location := range c.Index.Plugins {
		err := index.CheckLocation(location)
		if index.IsOCI(location) {
			var r registry.Reference
			r, err = registry.ParseReference(location)
			location = r.String()
			c.Index.Plugins[i] = location
		}
		if err != nil {
			return fmt.Errorf("configuration: %s: index.plugins: %w", c.Origin("index.plugins"), err)
		}
		if !strings.Contains(location, "://") && !filepath.IsAbs(location) {
			c.Index.Plugins[i] = filepath.Join(c.Dir, location)
		}
		name := index.Shown(c.Index.Plugins[i])
		if slices.Contains(shown, name) {
			return fmt.Errorf("configuration: %s: index.plugins: %s occurs twice", c.Origin("index.plugins"), name)
		}
		shown = append(shown, name)
	}
	return nil
}

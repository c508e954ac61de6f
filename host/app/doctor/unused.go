package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// UnusedSettings names settings for plugins and mounts that are not there. They may be for a plugin that is added
// later.
func UnusedSettings(c *config.Config, list []host.Status) (notes []string) {
	var plugins, mounts []string
	for _, p := range list {
		if p.Name == "" {
			continue
		}
		plugins = append(plugins, p.Name)
		if p.Manifest == nil {
			continue
		}
		for _, asked := range p.Manifest.Permissions.Files {
			mounts = append(mounts, asked.Mount)
		}
	}
	slices.Sort(mounts)
	look := func(key, kind string, names, known []string) {
		for _, name := range names {
			if slices.Contains(known, name) {
				continue
			}
			note := fmt.Sprintf("%s.%s has no effect: no %s has this name", key, name, kind)
			if near := strictyaml.Nearest(name, known); near != "" {
				note += fmt.Sprintf(": did you mean %s?", near)
			}
			notes = append(notes, note)
		}
	}
	look("plugin", "plugin", slices.Sorted(maps.Keys(c.Plugin)), plugins)
	look("shipped.mounts", "mount", slices.Sorted(maps.Keys(c.ShippedMounts)), slices.Compact(mounts))
	for _, tenant := range slices.Sorted(maps.Keys(c.Tenants)) {
		look("tenants."+tenant+".plugin", "plugin", slices.Sorted(maps.Keys(c.Tenants[tenant].Config)), plugins)
	}
	return notes
}

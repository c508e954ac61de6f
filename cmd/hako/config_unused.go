package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/internal/strictyaml"
)

// unused names what the configuration says about plugins and mounts that are not there. It may be meant for a plugin
// that comes later, so it is no error.
func (v *view) unused() (notes []string) {
	var plugins, mounts []string
	for _, p := range v.plugins {
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
			note := fmt.Sprintf("%s.%s sets nothing: no %s has this name", key, name, kind)
			if near := strictyaml.Nearest(name, known); near != "" {
				note += fmt.Sprintf(": did you mean %s?", near)
			}
			notes = append(notes, note)
		}
	}
	look("plugin", "plugin", slices.Sorted(maps.Keys(v.config.Plugin)), plugins)
	look("shipped.mounts", "mount", slices.Sorted(maps.Keys(v.config.ShippedMounts)), slices.Compact(mounts))
	for _, tenant := range slices.Sorted(maps.Keys(v.config.Tenants)) {
		look("tenants."+tenant+".plugin", "plugin", slices.Sorted(maps.Keys(v.config.Tenants[tenant].Config)), plugins)
	}
	return notes
}

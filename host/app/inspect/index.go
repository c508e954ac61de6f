package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/registry/index"
)

// Found is the result of a search in the indexes of plugins.
type Found struct {
	Plugins []FoundPlugin  `json:"plugins"`
	Indexes []index.Source `json:"indexes"`
}

// FoundPlugin is a plugin in an index.
type FoundPlugin struct {
	index.Plugin
	// Installed is the version of the plugin of that name in the plugin folders.
	Installed string `json:"installed,omitempty"`
}

// SearchIndexes searches the indexes. plugins are those of the host.
func SearchIndexes(ctx context.Context, indexes *index.Indexes, plugins []host.Status, query string) *Found {
	versions, names := map[string]string{}, []string{}
	for _, p := range plugins {
		if p.Name != "" {
			versions[p.Name] = p.Version
			names = append(names, p.Name)
		}
	}
	all, sources := indexes.Load(ctx, names)
	f := &Found{Plugins: []FoundPlugin{}, Indexes: sources}
	for _, p := range index.Search(all, query) {
		f.Plugins = append(f.Plugins, FoundPlugin{p, versions[p.Name]})
	}
	return f
}

// Notes are warnings about the plugins and the indexes. now is the current time.
func (f *Found) Notes(now time.Time) (notes []string) {
	for _, p := range f.Plugins {
		if p.Resembles != "" {
			notes = append(notes,
				fmt.Sprintf("%s looks like %s, which is another plugin: make sure that it is the one you mean",
					p.Name, p.Resembles))
		}
	}
	for _, s := range f.Indexes {
		switch {
		case s.Problem != "" && s.Plugins > 0 && !s.Fetched.IsZero():
			notes = append(notes, fmt.Sprintf("index %s: %s: this is the copy of %s (%s ago)", s.Location, s.Problem,
				s.Fetched.Local().Format(time.DateTime), age(now.Sub(s.Fetched))))
		case s.Problem != "":
			notes = append(notes, fmt.Sprintf("index %s: %s", s.Location, s.Problem))
		}
		for _, line := range s.Omitted {
			notes = append(notes, fmt.Sprintf("index %s: left out: %s", s.Location, line))
		}
	}
	return notes
}

// age returns a duration in days, hours or minutes.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d minutes", d/time.Minute)
}

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/terminal"
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

// fewPlugins is the largest number of plugins that are shown with their details.
const fewPlugins = 3

// Write writes a table of the plugins, or, if they are few, their details with the command that adds each.
func (f *Found) Write(w io.Writer, language string) error {
	if len(f.Plugins) <= fewPlugins {
		for i := range f.Plugins {
			f.Plugins[i].write(w, language)
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tINSTALLED\tFROM\tTITLE")
	for _, p := range f.Plugins {
		title := p.Title.In(language)
		if title == "" {
			title = p.Description.In(language)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Version, p.Installed, p.Reference, title)
	}
	return table.Flush()
}

func (p *FoundPlugin) write(w io.Writer, language string) {
	fmt.Fprintln(w, strings.TrimSpace(p.Name+" "+p.Version+"  "+p.Title.In(language)))
	if text := p.Description.In(language); text != "" {
		fmt.Fprintf(w, "  %s\n", text)
	}
	for _, line := range [][2]string{
		{"asks for", p.Asks.In(language)}, {"license", p.License}, {"publisher", claimed(p.Publisher)}, {"signer",
			claimed(p.Signer)},
		{"homepage", p.Homepage}, {"index", p.Index}, {"installed", p.Installed},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-10s %s\n", line[0]+":", line[1])
		}
	}
	add := "hako plugin add " + terminal.ShellWord(p.Reference)
	if p.Digest != "" {
		add += " --digest " + p.Digest
	}
	fmt.Fprintf(w, "  %s\n", add)
}

func claimed(text string) string {
	if text == "" {
		return ""
	}
	return text + " (as the index says)"
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

// WriteServers writes a table of upstream servers. If there is one, or one has the name that was searched for, it
// writes that one with the lines that configure it.
func WriteServers(w io.Writer, servers []index.Server, query string) error {
	for i := range servers {
		if len(servers) == 1 || servers[i].Name == query {
			return writeServer(w, &servers[i])
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tAS\tDESCRIPTION")
	for _, s := range servers {
		var kinds []string
		for _, setup := range s.Setups {
			if setup.Config != nil {
				kinds = append(kinds, setup.Kind)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, s.Version, strings.Join(kinds, ","), s.Description)
	}
	return table.Flush()
}

func writeServer(w io.Writer, s *index.Server) error {
	fmt.Fprintln(w, strings.TrimSpace(s.Name+" "+s.Version+"  "+s.Title))
	for _, line := range []string{s.Description, s.Homepage, s.Repository} {
		if line != "" {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	if s.Status == "deprecated" {
		fmt.Fprintln(w, "  It is deprecated.")
	}
	for _, setup := range s.Setups {
		if setup.Config == nil {
			fmt.Fprintf(w, "\n%s: not for hako: %s\n", setup.Kind, setup.Reason)
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", setup.Kind)
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(setup.Config); err != nil {
			return err
		}
		for _, note := range setup.Notes {
			fmt.Fprintf(w, "  %s\n", note)
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

func (a *app) pluginInspectCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "inspect FILE|NAME",
		Short: "Show what a plugin is, asks for and may do",
		Long: `Show what a plugin is: its manifest, digest and imports, what it asks for and what it is granted, its configuration and limits.
Everything is read from the file; nothing of the plugin runs.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				status, err := a.locate(v, args[0])
				if err != nil {
					return err
				}
				report, err := v.inspect(status)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(report)
				}
				return report.write(a.stdout)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// locate finds a plugin of the configuration by name or file, or else reads the file, which is then in no folder.
func (a *app) locate(v *view, argument string) (*host.Status, error) {
	file := a.path(argument)
	status, err := v.find(argument, file)
	if err == nil {
		return status, nil
	}
	if _, statErr := os.Stat(file); statErr != nil {
		return nil, err
	}
	m, module, _, err := readPlugin(file, v.config.MaxPluginSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &host.Status{Path: file, Name: m.Name, Version: m.Version, Digest: module.Digest, Manifest: m,
		Reason: "it is in none of the plugin folders"}, nil
}

// readPlugin reads a plugin file with its manifest.
func readPlugin(file string, maxSize int64) (m *manifest.Manifest, module *manifest.Module, wasm []byte, err error) {
	if wasm, err = manifest.ReadFile(file, maxSize); err != nil {
		return nil, nil, nil, err
	}
	m, module, err = parsePlugin(wasm)
	return m, module, wasm, err
}

// parsePlugin reads a plugin with its manifest inside.
func parsePlugin(wasm []byte) (*manifest.Manifest, *manifest.Module, error) {
	module, err := manifest.Read(wasm)
	if err != nil {
		return nil, nil, err
	}
	if module.Manifest == nil {
		return nil, nil, errNoManifest
	}
	m, err := module.ParseManifest()
	if err != nil {
		return nil, nil, fmt.Errorf("manifest:\n%w", err)
	}
	return m, module, nil
}

var errNoManifest = errors.New("it has no manifest: put NAME.yaml beside NAME.wasm, or pack it with hako plugin pack")

// inspection is all that can be known of a plugin without running it.
type inspection struct {
	pluginStatus
	Description string            `json:"description"`
	License     string            `json:"license"`
	Imports     []string          `json:"imports"`
	Permissions []string          `json:"permissions"`
	Grants      pluginGrants      `json:"grants"`
	Config      []configKey       `json:"config"`
	Limits      map[string]string `json:"limits"`
	Offers      []string          `json:"offers"`

	// given are the grants in plain words.
	given []string
}

type configKey struct {
	Key         string `json:"key"`
	Type        string `json:"type"`
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

func (v *view) inspect(p *host.Status) (*inspection, error) {
	if p.Manifest == nil {
		return nil, fmt.Errorf("%s is %s: %s", p.Path, p.State, p.Reason)
	}
	m, locale := p.Manifest, v.config.Locale
	report := &inspection{
		pluginStatus: pluginList([]host.Status{*p})[0],
		Description:  m.Description.In(locale),
		License:      m.License,
		Permissions:  grant.Explain(m.Permissions, locale),
		Grants:       newPluginGrants(p.Name, p.Grants),
		given:        p.Grants.Explain(locale),
		Offers:       offers(m),
		Config:       []configKey{},
		Limits:       v.config.Plugin[p.Name].Limits.Or(v.config.Limits).Or(m.Limits).Or(manifest.DefaultLimits).Texts(),
	}
	imports, err := v.imports(p)
	if err != nil {
		return nil, err
	}
	report.Imports = imports
	for _, name := range slices.Sorted(maps.Keys(m.Config)) {
		k := m.Config[name]
		report.Config = append(report.Config, configKey{name, k.Type, k.Default, k.Required, k.Description.In(locale)})
	}
	return report, nil
}

// imports lists the modules that the plugin's code imports. Those of a shipped plugin are read from the program.
func (v *view) imports(p *host.Status) ([]string, error) {
	wasm, err := manifest.ReadFile(p.Path, v.config.MaxPluginSize)
	if errors.Is(err, os.ErrNotExist) {
		wasm, err = shippedFiles.ReadFile("shipped/" + p.Path)
	}
	if err != nil {
		return nil, err
	}
	module, err := manifest.Read(wasm)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, i := range module.Imports {
		names[i.Module] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func offers(m *manifest.Manifest) []string {
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

// write writes the inspection for people.
func (r *inspection) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(key string, values ...string) {
		for _, value := range values {
			printf(table, "%s\t%s\n", key, value)
			key = ""
		}
	}
	row("name", r.Name+" "+r.Version)
	row("description", strings.Split(strings.TrimSpace(r.Description), "\n")...)
	row("licence", r.License)
	row("file", r.Path)
	row("digest", r.Digest)
	row("state", strings.TrimPrefix(strings.TrimSuffix(string(r.State)+": "+r.Reason, ": "), ": "))
	row("offers", r.Offers...)
	row("imports", r.Imports...)
	row("asks for", r.Permissions...)
	if r.Serving != "" {
		row("may do", r.given...)
	}
	var keys, limits []string
	for _, k := range r.Config {
		keys = append(keys, k.text())
	}
	row("configuration", keys...)
	for _, key := range slices.Sorted(maps.Keys(r.Limits)) {
		limits = append(limits, key+" "+r.Limits[key])
	}
	row("limits", strings.Join(limits, ", "))
	return table.Flush()
}

func (k configKey) text() string {
	text := k.Key + " (" + k.Type
	switch {
	case k.Required:
		text += ", required"
	case k.Default != nil:
		text += fmt.Sprintf(", default %v", k.Default)
	}
	return strings.TrimSuffix(text+"): "+k.Description, ": ")
}

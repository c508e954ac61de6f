package main

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/terminal"
)

func (a *app) pluginSearchCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "search [WORDS]",
		Short: "Search the indexes for plugins to add",
		Long: `Search the indexes of the configuration (index.plugins) for plugins that have all of the words, in
English or Japanese, and list all without words. For an unreachable index its last copy is searched. The
entries of an index are not verified; hako plugin add reads the plugin itself.`,
		Args: arguments(0, 20),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspectPlugins(cmd, func(v *view) error {
				if len(v.config.Index.Plugins) == 0 {
					return errors.New("there is no index to search: add one to index.plugins in " + config.FileName)
				}
				indexes := pluginfile.Indexes(v.config, 0)
				found := inspect.SearchIndexes(cmd.Context(), indexes, v.plugins, strings.Join(args, " "))
				if a.asJSON {
					return a.printJSON(found)
				}
				for _, note := range found.Notes(time.Now()) {
					printf(a.stderr, "%s\n", note)
				}
				if len(found.Plugins) == 0 {
					return printf(a.stderr, "No plugin matches all of these words.\n")
				}
				return printFound(a.stdout, found, v.config.Locale)
			})
		},
	})
}

// fewPlugins is the largest number of plugins that are shown with their details.
const fewPlugins = 3

// printFound prints a table of the plugins, or, if they are few, their details with the command that adds each.
func printFound(w io.Writer, f *inspect.Found, language string) error {
	if len(f.Plugins) <= fewPlugins {
		for i := range f.Plugins {
			printFoundPlugin(w, &f.Plugins[i], language)
		}
		return nil
	}
	return printTable(w, "NAME\tVERSION\tINSTALLED\tFROM\tTITLE", f.Plugins, func(p inspect.FoundPlugin) []any {
		return []any{p.Name, p.Version, p.Installed, p.Reference,
			cmp.Or(p.Title.In(language), p.Description.In(language))}
	})
}

func printFoundPlugin(w io.Writer, p *inspect.FoundPlugin, language string) {
	printf(w, "%s\n", strings.TrimSpace(p.Name+" "+p.Version+"  "+p.Title.In(language)))
	if text := p.Description.In(language); text != "" {
		printf(w, "  %s\n", text)
	}
	for _, line := range [][2]string{
		{"asks for", p.Asks.In(language)}, {"license", p.License}, {"publisher", claimed(p.Publisher)}, {"signer",
			claimed(p.Signer)},
		{"homepage", p.Homepage}, {"index", p.Index}, {"installed", p.Installed},
	} {
		if line[1] != "" {
			printf(w, "  %-10s %s\n", line[0]+":", line[1])
		}
	}
	add := "hako plugin add " + terminal.ShellWord(p.Reference)
	if p.Digest != "" {
		add += " --digest " + p.Digest
	}
	printf(w, "  %s\n", add)
}

func claimed(text string) string {
	if text == "" {
		return ""
	}
	return text + " (as the index says)"
}

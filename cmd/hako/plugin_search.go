package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
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
				return found.Write(a.stdout, v.config.Locale)
			})
		},
	})
}

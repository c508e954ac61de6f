package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/internal/clip"
)

func (a *app) pluginListCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the plugins, in service or not",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				signers, err := inspect.LoadSigners(v.config)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(inspect.List(v.plugins, signers))
				}
				if len(v.plugins) == 0 {
					return printf(a.stderr, "There are no plugins: name a folder with --plugins, "+
						"or start one with hako plugin new\n")
				}
				defer printRemedies(a.stderr, v.plugins, v.config.Locale)
				return printPlugins(a.stdout, v.plugins, signers)
			})
		},
	})
}

// maxSigner is the longest name of a signer in a table, in characters.
const maxSigner = 40

// printPlugins prints a line for each plugin.
func printPlugins(out io.Writer, list []host.Status, signers inspect.Signers) error {
	return printWide(out, "NAME\tVERSION\tSTATE\tSIGNER\tTOOLS", list, func(p host.Status) []any {
		return []any{p.Title(), p.Version, p.State, clip.Runes(signers.Text(&p), maxSigner),
			strings.Join(p.Tools, ", ")}
	})
}

// printRemedies prints what is to be done about plugins that are not in service, and warnings about those that are.
func printRemedies(out io.Writer, list []host.Status, language string) {
	for _, p := range list {
		if note := inspect.Remedy(p, language); note != "" {
			printf(out, "%s\n", note)
		}
	}
}

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/buildinfo"
)

// version is set by the linker; go install leaves it to the build information.
var version = ""

func thisBuild() buildinfo.Info { return buildinfo.New(version) }

func (a *app) versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(thisBuild())
			}
			return a.printVersion()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printVersion() error {
	return printf(a.stdout, "%s\n", thisBuild())
}

// printJSON writes v to standard output.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.data())
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

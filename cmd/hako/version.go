package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/buildinfo"
)

// version is set by the linker; go install leaves it to the build information.
var version = ""

func thisBuild() buildinfo.Info { return buildinfo.New(version) }

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return show(a, thisBuild(), func(io.Writer, buildinfo.Info) error { return a.printVersion() })
		},
	})
}

func (a *app) printVersion() error {
	return printf(a.stdout, "%s\n", thisBuild())
}

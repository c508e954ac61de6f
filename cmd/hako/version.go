package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/pdk/abi"
)

// version is set by the linker; go install leaves it to the build information.
var version = ""

func thisBuild() build { return newBuild(version) }

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return show(a, thisBuild(), func(io.Writer, build) error { return a.printVersion() })
		},
	})
}

func (a *app) printVersion() error {
	return printf(a.stdout, "%s\n", thisBuild())
}

// build describes the running program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
	// ABI is the guest ABI that this host speaks.
	ABI int `json:"abi"`
}

// String returns the text of "hako version".
func (b build) String() string {
	return fmt.Sprintf("hako %s (guest ABI %d, %s, %s)", b.Version, b.ABI, b.Go, b.System)
}

// newBuild returns the build of this process. version may be empty; then it comes from the build information of Go.
func newBuild(version string) build {
	b := build{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, ABI: abi.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

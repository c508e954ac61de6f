package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/pdk/abi"
)

// version is set by the linker; go install leaves it to the build information.
var version = ""

// build describes this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
	// ABI is the guest ABI that this host speaks.
	ABI int `json:"abi"`
}

func (b build) String() string {
	return fmt.Sprintf("hako %s (guest ABI %d, %s, %s)", b.Version, b.ABI, b.Go, b.System)
}

func thisBuild() build {
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

// Package buildinfo describes the running program: New returns its version, commit and ABI.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/hako-run/hako/pdk/abi"
)

// Info describes a program.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
	// ABI is the guest ABI that this host speaks.
	ABI int `json:"abi"`
}

// String returns the text of "hako version".
func (b Info) String() string {
	return fmt.Sprintf("hako %s (guest ABI %d, %s, %s)", b.Version, b.ABI, b.Go, b.System)
}

// New returns the Info of this process. version may be empty; then it comes from the build information of Go.
func New(version string) Info {
	b := Info{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, ABI: abi.Version}
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

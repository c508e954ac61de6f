package sandbox

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// NoteOutside records that the guest used a path that lies under no mount. The path has no leading "/".
func (g *Guest) NoteOutside(path string) { g.call.instance.noteOutside(path) }

const (
	// maxOutside bounds the paths outside of mounts that are logged in a call, maxOutsidePath each in characters.
	maxOutside     = 3
	maxOutsidePath = 200
)

// runtimeFolders are where language runtimes look by themselves: for what a machine has, such as time zones, and for the
// sources and the library of Python, whose places componentize-py keeps without the files.
var runtimeFolders = []string{"0/", "python/", "dev/", "etc/", "lib/", "proc/", "sys/", "usr/"}

func (i *instance) noteOutside(path string) {
	c := i.call
	ofRuntime := func(folder string) bool { return strings.HasPrefix(path, folder) }
	if c == nil || !i.started || len(c.outside) == maxOutside || slices.ContainsFunc(runtimeFolders, ofRuntime) {
		return
	}
	path = "/" + clip.Runes(visible.Line(path), maxOutsidePath)
	if !slices.Contains(c.outside, path) {
		c.outside = append(c.outside, path)
	}
}

// logOutside logs the paths under no mount that the guest used, because it was told no more than that they do not exist.
// Where that did no harm, authors alone want to know.
func (c *call) logOutside(failed bool) {
	level := abi.LogDebug
	if failed {
		level = abi.LogWarn
	}
	for _, path := range c.outside {
		c.log.record(level, path+" is under no mount of the plugin: "+c.mountsRemedy())
	}
}

func (c *call) mountsRemedy() string {
	mounts := c.plugin.spec.Mounts
	if len(mounts) == 0 {
		return "it has none; ask for a folder in the manifest's permissions.files and have the plugin approved"
	}
	var paths []string
	for _, mount := range mounts[:min(len(mounts), 10)] {
		paths = append(paths, mount.GuestPath())
	}
	return "it has " + strings.Join(paths, ", ") + "; use a path below, or ask for another folder in the manifest's " +
		"permissions.files"
}

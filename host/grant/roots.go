package grant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/internal/wholefile"
)

// Roots are directories that the operator allows for every plugin that asks for roots. Each becomes a mount under the
// rules of the mount that asks: its access, its deny globs and its quota.
type Roots struct {
	// Dirs are absolute paths of directories.
	Dirs []string
	// Hidden are absolute paths of files and directories that no root and no other mount shows, whether they exist or
	// not: those of the host itself.
	Hidden []string
}

// Check returns why a directory cannot be a root, or nil: it does not exist or is no directory, it is a whole file
// system, it is hidden, or its name cannot be shown.
func (r Roots) Check() error {
	for _, dir := range r.Dirs {
		info, err := os.Stat(dir)
		switch name := filepath.Base(dir); {
		case err != nil:
			return fmt.Errorf("%s cannot be allowed: %w: name a directory that exists", dir, err)
		case !info.IsDir():
			return fmt.Errorf("%s cannot be allowed: it is a file: name a directory", dir)
		case os.IsPathSeparator(name[0]):
			return fmt.Errorf("%s cannot be allowed: it is a whole file system: name a directory in it", dir)
		case strings.ContainsFunc(name, visible.Hidden):
			return fmt.Errorf("%q cannot be allowed: its name has characters that are not visible: rename it", dir)
		case r.hides(dir):
			return fmt.Errorf("%s cannot be allowed: hako keeps its own files there: name another directory", dir)
		}
	}
	return nil
}

// mounts returns the mounts of the roots for the permission that asks for them; granted are the mounts of asked, in the
// same order. A root is named by the last element of its path, and by a number after that if the name is taken. A
// directory that is a mount already gets no second one.
func (r Roots) mounts(asked []manifest.FilePermission, granted []Mount) ([]Mount, error) {
	i := slices.IndexFunc(asked, func(p manifest.FilePermission) bool { return p.Roots })
	if i < 0 {
		return nil, nil
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	all := slices.Clone(granted)
	for _, dir := range r.Dirs {
		dir = filepath.Clean(dir)
		if slices.ContainsFunc(all, func(m Mount) bool { return realPath(m.Path) == realPath(dir) }) {
			continue
		}
		mount := Mount{Name: rootName(dir, all), Path: dir, Write: granted[i].Write, Quota: granted[i].Quota}
		mount.Deny = slices.Concat(granted[i].Deny, r.denied(dir))
		all = append(all, mount)
	}
	return all[len(granted):], nil
}

// rootName returns a name for the mount of dir that none of the mounts has.
func rootName(dir string, mounts []Mount) string {
	base := strings.ReplaceAll(filepath.Base(dir), `\`, "_") // which guests may take for a separator
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !slices.ContainsFunc(mounts, func(m Mount) bool { return strings.EqualFold(m.Name, name) }) {
			return name
		}
	}
}

// hides reports whether a directory is hidden or below a hidden one.
func (r Roots) hides(dir string) bool {
	return slices.ContainsFunc(r.Hidden, func(h string) bool { _, ok := within(realPath(dir), realPath(h)); return ok })
}

// denied returns the deny globs for what is hidden in dir, and for the temporary files of hidden files. Symbolic links
// on the way to a hidden file are hidden like the file: who replaces one replaces what the host reads.
func (r Roots) denied(dir string) (globs []string) {
	for _, hidden := range r.Hidden {
		for _, path := range append(followLinks(hidden), realPath(hidden)) {
			inside, ok := within(path, realPath(dir))
			glob := globSpecials.Replace(filepath.ToSlash(inside))
			if ok && !slices.Contains(globs, glob) {
				globs = append(globs, glob)
			}
		}
	}
	if len(globs) > 0 {
		globs = append(globs, "**/"+wholefile.Prefix+"*")
	}
	return globs
}

var globSpecials = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// within returns path relative to dir, and false if it is not dir or below it.
func within(path, dir string) (string, bool) {
	relative, err := filepath.Rel(dir, path)
	return relative, err == nil && filepath.IsLocal(relative)
}

// realPath returns path without symbolic links, as far as it exists.
func realPath(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			rest, _ := filepath.Rel(dir, path) // dir is path or above it
			return filepath.Join(found, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// maxLinks is the most symbolic links that are followed for one path, as in Linux.
const maxLinks = 40

// followLinks returns path, and what becomes of it as one symbolic link in it after the other is replaced by its
// target.
func followLinks(path string) []string {
	path = filepath.Clean(path)
	paths := []string{path}
	for i := len(filepath.VolumeName(path)) + 1; i <= len(path) && len(paths) <= maxLinks; i++ {
		if i < len(path) && !os.IsPathSeparator(path[i]) {
			continue
		}
		target, err := os.Readlink(path[:i])
		if err != nil {
			continue // it is no link, or does not exist
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:i]), target)
		}
		path = filepath.Join(target, path[i:])
		paths = append(paths, path)
		i = len(filepath.VolumeName(path))
	}
	return paths
}

// RootPaths returns the guest's paths of the mounts by their paths on the host, with and without symbolic links, as the
// JSON of abi.Request.Roots. It is nil for plugins that do not ask for roots.
func (g Grants) RootPaths(m *manifest.Manifest) ([]byte, error) {
	if !slices.ContainsFunc(m.Permissions.Files, func(p manifest.FilePermission) bool { return p.Roots }) {
		return nil, nil
	}
	paths := map[string]string{}
	for _, mount := range g.Mounts {
		paths[realPath(mount.Path)] = "/" + mount.Name
	}
	for _, mount := range g.Mounts {
		paths[filepath.Clean(mount.Path)] = "/" + mount.Name
	}
	return json.Marshal(paths)
}

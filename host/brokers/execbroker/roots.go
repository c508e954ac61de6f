package execbroker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// root is the directory of a mount.
type root struct {
	name, path string
	write      bool
	// hidden reports that commands cannot use it, because it has deny globs.
	hidden bool
}

// roots are the directories of the mounts. The first one is the workspace, in which commands start.
type roots struct{ list []root }

func newRoots(mounts []grant.Mount) (roots, error) {
	var r roots
	for _, m := range mounts {
		real, err := filepath.EvalSymlinks(m.Path)
		if err != nil {
			return roots{}, fmt.Errorf("mount %s: %w", m.Name, err)
		}
		r.list = append(r.list, root{m.Name, real, m.Write, !m.ForCommands()})
	}
	return r, nil
}

func (r *roots) readable() (paths []string) {
	for _, root := range r.list {
		if !root.hidden {
			paths = append(paths, root.path)
		}
	}
	return paths
}

func (r *roots) writable() (paths []string) {
	for _, root := range r.list {
		if root.write && !root.hidden {
			paths = append(paths, root.path)
		}
	}
	return paths
}

// writableMount returns the name of the writable mount that contains path, or "".
func (r *roots) writableMount(path string) string {
	for _, root := range r.list {
		if _, ok := below(path, root.path); ok && root.write && !root.hidden {
			return root.name
		}
	}
	return ""
}

// resolveDir returns the directory for a guest's cwd: "/MOUNT/...", a path relative to the workspace, or an absolute
// host path in a mount. It follows links that stay in the mount. "" is the workspace. If commands cannot use the
// workspace, "" and relative paths are errors: another directory in its place would be one that the caller does not
// mean. For "" it returns empty, an empty directory, if the plugin has no mounts at all.
func (r *roots) resolveDir(cwd, empty string) (string, *abi.Error) {
	switch {
	case strings.ContainsRune(cwd, 0):
		return "", r.outsideError(cwd)
	case cwd == "" && len(r.list) == 0:
		return empty, nil
	case len(r.list) == 0:
		return "", r.outsideError(cwd)
	case !path.IsAbs(cwd):
		return r.resolveBelow(&r.list[0], cwd, cwd)
	}
	clean := path.Clean(cwd)
	for i := range r.list {
		if rest, ok := below(clean, "/"+r.list[i].name); ok {
			return r.resolveBelow(&r.list[i], rest, cwd)
		}
	}
	if in, rest := r.usable(clean); in != nil {
		return r.resolveBelow(in, rest, cwd)
	}
	return "", r.outsideError(cwd)
}

// usable returns the root for commands that contains a host path, and the path below it.
func (r *roots) usable(clean string) (in *root, rest string) {
	for i := range r.list {
		if rest, ok := below(clean, r.list[i].path); ok && !r.list[i].hidden {
			return &r.list[i], rest
		}
	}
	return nil, ""
}

// resolveBelow returns the directory at the path rest below a root. It refuses links that leave the root. A directory
// in a hidden root is usable if another root contains it.
func (r *roots) resolveBelow(in *root, rest, cwd string) (string, *abi.Error) {
	if in.hidden {
		inside := strings.TrimLeft(rest, "/")
		other, left := r.usable(filepath.Join(in.path, filepath.FromSlash(inside)))
		if other == nil || !filepath.IsLocal(cmp.Or(inside, ".")) {
			return "", r.hiddenError(in, cwd)
		}
		in, rest = other, left
	}
	tree, err := os.OpenRoot(in.path)
	if err != nil {
		return "", abi.Errorf(abi.CodeInvalid, "the directory of /%s does not exist any more", in.name)
	}
	defer tree.Close()
	local := cmp.Or(strings.Trim(rest, "/"), ".")
	info, err := tree.Stat(filepath.FromSlash(local))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", abi.Errorf(abi.CodeInvalid, "the directory %q does not exist", cwd)
	case err != nil:
		return "", r.outsideError(cwd)
	case !info.IsDir():
		return "", abi.Errorf(abi.CodeInvalid, "%q is not a directory", cwd)
	}
	return filepath.Join(in.path, filepath.FromSlash(local)), nil
}

// below reports whether name is dir or below it, and returns the rest of the path.
func below(name, dir string) (rest string, ok bool) {
	if name == dir || dir == "/" {
		return strings.TrimPrefix(name, dir), true
	}
	rest, ok = strings.CutPrefix(name, dir+"/")
	return rest, ok
}

func (r *roots) outsideError(cwd string) *abi.Error {
	text := fmt.Sprintf("%q is outside of the working directories of commands", cwd)
	if names := r.names(false); len(names) > 0 {
		text += ": they are " + strings.Join(names, ", ")
	} else {
		text += ": there are none"
	}
	if hidden := r.names(true); len(hidden) > 0 {
		text += fmt.Sprintf(" (%s cannot be used, because commands would see the parts of it that are hidden from "+
			"the plugin)", strings.Join(hidden, ", "))
	}
	return abi.Errorf(abi.CodeNotGranted, "%s", text)
}

// hiddenError explains why a command cannot work in a hidden root.
func (r *roots) hiddenError(in *root, cwd string) *abi.Error {
	what := fmt.Sprintf("the cwd %q is in", cwd)
	if cwd == "" {
		what = "without cwd a command works in"
	}
	choice := "there is no other directory for commands"
	if names := r.names(false); len(names) > 0 {
		choice = "set cwd to a directory that commands can use: " + strings.Join(names, ", ")
	}
	return abi.Errorf(abi.CodeNotGranted, "%s /%s, which commands cannot use, because they would see the parts of it "+
		"that are hidden from the plugin: %s. The operator can change that: mount a directory as %s that has none of "+
		"hako's own files in it and no deny", what, in.name, choice, in.name)
}

// names returns the guest paths of the roots that are hidden, or of those that are not.
func (r *roots) names(hidden bool) (names []string) {
	for _, root := range r.list {
		if root.hidden == hidden {
			names = append(names, "/"+root.name)
		}
	}
	return names
}

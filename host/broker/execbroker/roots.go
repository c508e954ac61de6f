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
}

// roots are the directories that commands may work in. They start in the first one.
type roots struct {
	list []root
	// partlyHidden are the mounts with deny globs, which commands cannot use.
	partlyHidden []string
}

func newRoots(mounts []grant.Mount) (roots, error) {
	var r roots
	for _, m := range mounts {
		if len(m.Deny) > 0 {
			r.partlyHidden = append(r.partlyHidden, "/"+m.Name)
			continue
		}
		real, err := filepath.EvalSymlinks(m.Path)
		if err != nil {
			return roots{}, fmt.Errorf("mount %s: %w", m.Name, err)
		}
		r.list = append(r.list, root{m.Name, real, m.Write})
	}
	return r, nil
}

func (r *roots) readable() (paths []string) {
	for _, root := range r.list {
		paths = append(paths, root.path)
	}
	return paths
}

func (r *roots) writable() (paths []string) {
	for _, root := range r.list {
		if root.write {
			paths = append(paths, root.path)
		}
	}
	return paths
}

// writableMount returns the name of the writable mount that contains path, or "".
func (r *roots) writableMount(path string) string {
	for _, root := range r.list {
		if _, ok := below(path, root.path); ok && root.write {
			return root.name
		}
	}
	return ""
}

// resolveDir returns the directory for a guest's cwd: "/MOUNT/...", a path relative to the first mount, or an absolute
// host path in a mount. It follows links that stay in the mount. For "" it returns the first mount, or fallback if
// there is none.
func (r *roots) resolveDir(cwd, fallback string) (string, *abi.Error) {
	switch {
	case strings.ContainsRune(cwd, 0):
		return "", r.outsideError(cwd)
	case cwd == "" && len(r.list) == 0:
		return fallback, nil
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
	for i := range r.list {
		if rest, ok := below(clean, r.list[i].path); ok {
			return r.resolveBelow(&r.list[i], rest, cwd)
		}
	}
	return "", r.outsideError(cwd)
}

// resolveBelow returns the directory at the path rest below a root. It refuses links that leave the root.
func (r *roots) resolveBelow(in *root, rest, cwd string) (string, *abi.Error) {
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
	var names []string
	for _, root := range r.list {
		names = append(names, "/"+root.name)
	}
	text := fmt.Sprintf("%q is outside of the working directories of commands", cwd)
	switch {
	case len(names) > 0:
		text += ": they are " + strings.Join(names, ", ")
	default:
		text += ": there are none"
	}
	if len(r.partlyHidden) > 0 {
		text += fmt.Sprintf(" (%s cannot be used, because commands would see the parts of it that are hidden from "+
			"the plugin)", strings.Join(r.partlyHidden, ", "))
	}
	return abi.Errorf(abi.CodeNotGranted, "%s", text)
}

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

// root is a mount as commands see it: a directory of the host's.
type root struct {
	name, path string
	write      bool
}

// roots are the directories that commands work in. The first one is where they start.
type roots struct {
	list []root
	// partly are the names of mounts of which the guest may see only a part, and commands nothing.
	partly []string
}

func newRoots(mounts []grant.Mount) (roots, error) {
	var r roots
	for _, m := range mounts {
		if len(m.Deny) > 0 {
			r.partly = append(r.partly, "/"+m.Name)
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

// holds returns the name of the writable mount that path is in, or "".
func (r *roots) holds(path string) string {
	for _, root := range r.list {
		if _, ok := below(path, root.path); ok && root.write {
			return root.name
		}
	}
	return ""
}

// dir returns the directory that a guest means by cwd: "/MOUNT/...", relative to the first mount, or an absolute path of the host's within
// a mount. Links are followed as long as they stay in the mount. For "" it is the first mount, or fallback where there is none.
func (r *roots) dir(cwd, fallback string) (string, *abi.Error) {
	switch {
	case strings.ContainsRune(cwd, 0):
		return "", r.outside(cwd)
	case cwd == "" && len(r.list) == 0:
		return fallback, nil
	case len(r.list) == 0:
		return "", r.outside(cwd)
	case !path.IsAbs(cwd):
		return r.within(&r.list[0], cwd, cwd)
	}
	clean := path.Clean(cwd)
	for i := range r.list {
		if rest, ok := below(clean, "/"+r.list[i].name); ok {
			return r.within(&r.list[i], rest, cwd)
		}
	}
	for i := range r.list {
		if rest, ok := below(clean, r.list[i].path); ok {
			return r.within(&r.list[i], rest, cwd)
		}
	}
	return "", r.outside(cwd)
}

// within returns the directory at rest below a root. Links out of it are refused without a look at where they lead.
func (r *roots) within(in *root, rest, cwd string) (string, *abi.Error) {
	tree, err := os.OpenRoot(in.path)
	if err != nil {
		return "", &abi.Error{Code: abi.CodeInvalid, Message: fmt.Sprintf("the directory of /%s is not there any more", in.name)}
	}
	defer tree.Close()
	local := cmp.Or(strings.Trim(rest, "/"), ".")
	info, err := tree.Stat(filepath.FromSlash(local))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &abi.Error{Code: abi.CodeInvalid, Message: fmt.Sprintf("the directory %q is not there", cwd)}
	case err != nil:
		return "", r.outside(cwd)
	case !info.IsDir():
		return "", &abi.Error{Code: abi.CodeInvalid, Message: fmt.Sprintf("%q is not a directory", cwd)}
	}
	return filepath.Join(in.path, filepath.FromSlash(local)), nil
}

// below reports whether name is dir or lies below it, and what remains.
func below(name, dir string) (rest string, ok bool) {
	if name == dir || dir == "/" {
		return strings.TrimPrefix(name, dir), true
	}
	rest, ok = strings.CutPrefix(name, dir+"/")
	return rest, ok
}

func (r *roots) outside(cwd string) *abi.Error {
	var names []string
	for _, root := range r.list {
		names = append(names, "/"+root.name)
	}
	text := fmt.Sprintf("%q is outside of the directories that commands may work in", cwd)
	switch {
	case len(names) > 0:
		text += ": they are " + strings.Join(names, ", ")
	default:
		text += ": there are none"
	}
	if len(r.partly) > 0 {
		text += fmt.Sprintf(" (%s is not, because a part of it is hidden from the plugin, which a command would see)", strings.Join(r.partly, ", "))
	}
	return &abi.Error{Code: abi.CodeNotGranted, Message: text}
}

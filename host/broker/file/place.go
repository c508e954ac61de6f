package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/broker"
)

const (
	// MaxPath is the longest path, in bytes, as PATH_MAX on Linux.
	MaxPath  = 4096
	maxLinks = 8 // symbolic links on one path, as in os.Root
	maxTries = 8 // walks of a path that changes meanwhile
)

// place is where a path leads: one name in a directory that is held open. No link lies between the mount and the place.
type place struct {
	dir    *os.Root    // the parent
	name   string      // in dir; "." for the mount itself
	path   string      // relative to the mount, after links
	info   fs.FileInfo // of the name itself, links not followed; nil if there is no such file yet
	linked bool        // the guest's path went through a symbolic link
	mount  *Mount
	h      *Handles // which pay for the way there
}

func (p *place) close() {
	if p.dir != p.mount.root {
		_ = p.dir.Close() // Only a descriptor; nothing can be lost.
	}
}

// exists is an error unless something has the place's name.
func (p *place) exists() error {
	if p.info == nil {
		return sys.ENOENT
	}
	return nil
}

// changeable is an error where a guest may not create, replace or remove the name.
func (p *place) changeable() error {
	switch {
	case p.linked:
		return errThrough
	case p.name == ".":
		return sys.EINVAL
	}
	return nil
}

// isDir and isLink tell what has the place's name.
func (p *place) isDir() bool  { return p.info != nil && p.info.IsDir() }
func (p *place) isLink() bool { return p.info != nil && p.info.Mode()&fs.ModeSymlink != 0 }

// at resolves a guest's path and calls do with its place. A symbolic link as the last element is followed if follow is set,
// or if the path ends in a slash. When do or the walk meets a name that changed meanwhile, all starts again.
func (m *Mount) at(h *Handles, guestPath string, follow bool, do func(*place) error) error {
	parts, err := split(guestPath)
	if err != nil {
		return err
	}
	directory := strings.HasSuffix(guestPath, "/")
	for range maxTries {
		p, err := m.resolve(h, parts, follow || directory)
		if err == nil {
			if directory && p.info != nil && !p.isDir() {
				err = sys.ENOTDIR
			} else {
				err = do(p)
			}
			p.close()
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return errChanged
}

// split cuts a guest's path into its elements; none stand for the mount itself.
func split(guestPath string) ([]string, error) {
	if len(guestPath) > MaxPath {
		return nil, sys.ENAMETOOLONG
	}
	clean := path.Clean(strings.TrimLeft(guestPath, "/"))
	switch {
	case clean == ".":
		return nil, nil
	case clean == "..", strings.HasPrefix(clean, "../"):
		return nil, errEscapes
	}
	parts := strings.Split(clean, "/")
	if slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, "\x00") || !validName(s) }) {
		return nil, sys.EINVAL
	}
	return parts, nil
}

// validWindowsName reports whether one element of a path can be a name on Windows. What Windows would read as another name is none: streams,
// separators, dropped dots and spaces, and short names ("SECRET~1"), which would slip past deny globs.
func validWindowsName(name string) bool {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`\:*?"<>|`, r) }) || strings.TrimRight(name, ". ") != name {
		return false
	}
	for tail := name; tail != ""; {
		if _, tail, _ = strings.Cut(tail, "~"); tail != "" && '0' <= tail[0] && tail[0] <= '9' {
			return false
		}
	}
	return true
}

// resolve walks to a place, and starts over at each symbolic link with the link's target in the path.
func (m *Mount) resolve(h *Handles, parts []string, follow bool) (*place, error) {
	for links := range maxLinks + 1 {
		p, target, err := m.walk(h, parts, follow)
		if err != nil {
			return nil, err
		}
		if p != nil {
			p.linked = links > 0
			return p, nil
		}
		if parts, err = split(target); err != nil {
			return nil, err
		}
	}
	return nil, sys.ELOOP
}

// walk goes down the path. It returns the place, or, if it meets a link to follow, the path that takes it into account.
func (m *Mount) walk(h *Handles, parts []string, follow bool) (*place, string, error) {
	p := &place{dir: m.root, name: ".", mount: m, h: h}
	if err := h.spend(broker.PathSteps); err != nil {
		return nil, "", err
	}
	if len(parts) == 0 {
		info, err := m.root.Lstat(".")
		p.info = info
		return p, "", err
	}
	for i, name := range parts {
		if err := p.descend(name); err != nil {
			p.close()
			return nil, "", err
		}
		last := i == len(parts)-1
		if p.isLink() && (follow || !last) {
			defer p.close()
			_, target, err := p.target()
			return nil, path.Join(target, path.Join(parts[i+1:]...)), err
		}
		if !last && p.info == nil {
			p.close()
			return nil, "", sys.ENOENT
		}
	}
	return p, "", nil
}

// descend moves from a directory to a name in it.
func (p *place) descend(name string) error {
	if err := p.enter(); err != nil {
		return err
	}
	p.name, p.path = name, path.Join(p.path, name)
	if err := p.h.spend(broker.PathSteps + p.mount.deny.cost(p.path)); err != nil {
		return err
	}
	if p.mount.deny.match(p.path) {
		return errHidden
	}
	info, err := p.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		p.info = nil
		return nil
	}
	p.info = info
	return err
}

// enter makes the place itself the open directory. What it opens must be what it looked at before: if the name has become a
// link meanwhile, following it is not for this package to do unseen.
func (p *place) enter() error {
	if p.name == "." {
		return nil
	}
	if !p.isDir() {
		return sys.ENOTDIR
	}
	sub, err := p.dir.OpenRoot(p.name)
	if err != nil {
		return changed(err)
	}
	info, err := sub.Stat(".")
	if err == nil && !os.SameFile(info, p.info) {
		err = errChanged
	}
	if err != nil {
		_ = sub.Close()
		return err
	}
	p.close()
	p.dir = sub
	return nil
}

// target is where the link at the place points: as written there, and as a path relative to the mount.
func (p *place) target() (written, resolved string, err error) {
	written, err = p.dir.Readlink(p.name)
	if err != nil {
		return "", "", changed(err)
	}
	written = filepath.ToSlash(written)
	if path.IsAbs(written) {
		return "", "", errEscapes
	}
	return written, path.Join(path.Dir(p.path), written), nil
}

// changed is the error of looking again at a name that was there a moment ago: errChanged, unless the system had another
// reason to refuse.
func changed(err error) error {
	var host syscall.Errno
	if errors.As(err, &host) {
		switch host {
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL:
		default:
			return err
		}
	}
	return errChanged
}

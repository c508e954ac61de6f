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
	"unicode/utf8"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/text/unicode/norm"

	"github.com/hako-run/hako/host/broker"
)

const (
	// MaxPath is the longest path, in bytes, as PATH_MAX on Linux.
	MaxPath  = 4096
	maxLinks = 8 // symbolic links on one path, as in os.Root
	maxTries = 8 // walks of a path that changes meanwhile
)

// dirEntry is the entry that a path resolves to: a name in a directory that is kept open. All links of the path are
// resolved.
type dirEntry struct {
	dir    *os.Root    // the open parent directory
	name   string      // in dir; "." for the mount itself
	path   string      // relative to the mount, after links
	info   fs.FileInfo // from Lstat; nil if the entry does not exist
	linked bool        // the guest's path went through a symbolic link
	mount  *Mount
	h      *Handles // charged for the walk
}

func (p *dirEntry) close() {
	if p.dir != p.mount.root {
		_ = p.dir.Close() // Nothing was written through it.
	}
}

// mustExist returns ENOENT unless the entry exists.
func (p *dirEntry) mustExist() error {
	if p.info == nil {
		return sys.ENOENT
	}
	return nil
}

// checkModifiable returns an error if a guest may not create, replace or remove the entry.
func (p *dirEntry) checkModifiable() error {
	switch {
	case p.linked:
		return errThrough
	case p.name == ".":
		return sys.EINVAL
	}
	return nil
}

func (p *dirEntry) isDir() bool  { return p.info != nil && p.info.IsDir() }
func (p *dirEntry) isLink() bool { return p.info != nil && p.info.Mode()&fs.ModeSymlink != 0 }

// withEntry resolves a guest's path and calls do with the entry. A symbolic link in the last element is followed if
// follow is set or if the path ends in a slash. If the walk or do returns errChanged, it tries again, maxTries times in
// all.
func (m *Mount) withEntry(h *Handles, guestPath string, follow bool, do func(*dirEntry) error) error {
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

// split splits a guest's path into its elements. The path of the mount itself has none.
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

// validWindowsName reports whether a path element is a valid name on Windows. Spellings that Windows maps to another
// name are invalid, because deny globs would not match them: streams, separators, trailing dots and spaces, and short
// names ("SECRET~1").
func validWindowsName(name string) bool {
	reserved := func(r rune) bool { return r < ' ' || strings.ContainsRune(`\:*?"<>|`, r) }
	if strings.ContainsFunc(name, reserved) || strings.TrimRight(name, ". ") != name {
		return false
	}
	for tail := name; tail != ""; {
		if _, tail, _ = strings.Cut(tail, "~"); tail != "" && '0' <= tail[0] && tail[0] <= '9' {
			return false
		}
	}
	return true
}

// resolve walks a path. At each symbolic link it starts again, with the link's target in the path.
func (m *Mount) resolve(h *Handles, parts []string, follow bool) (*dirEntry, error) {
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

// walk descends along the path. It returns the entry, or, at a link to follow, the path with the link's target in place
// of the link.
func (m *Mount) walk(h *Handles, parts []string, follow bool) (*dirEntry, string, error) {
	p := &dirEntry{dir: m.root, name: ".", mount: m, h: h}
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

// descend moves from a directory to an entry in it.
func (p *dirEntry) descend(name string) error {
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
		return p.descendEquivalent()
	}
	p.info = info
	return err
}

// descendEquivalent looks for an entry whose name is canonically equivalent to that of the missing entry. Of several it
// takes the first in order.
func (p *dirEntry) descendEquivalent() error {
	p.info = nil
	if isASCII(p.name) || !utf8.ValidString(p.name) {
		return nil
	}
	if err := p.h.spend(broker.ListSteps); err != nil {
		return err
	}
	dir, err := p.dir.Open(".")
	if err != nil {
		return nil // It cannot be listed, so the entry is missing.
	}
	defer dir.Close()
	wanted, found := norm.NFC.String(p.name), ""
	for {
		entries, err := dir.Readdirnames(maxEntries)
		if stop := p.h.spend(int64(len(entries)) * broker.EntrySteps); stop != nil {
			return stop
		}
		for _, name := range entries {
			if !isASCII(name) && (found == "" || name < found) && norm.NFC.String(name) == wanted {
				found = name
			}
		}
		if err != nil {
			break
		}
	}
	if found == "" {
		return nil
	}
	// Deny globs treat equivalent names as one, so the check of the guest's name holds for this one.
	p.name, p.path = found, path.Join(path.Dir(p.path), found)
	info, err := p.dir.Lstat(found)
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	p.info = info
	return err
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// enter opens the entry as the directory of the next one. It returns errChanged if the entry was exchanged since Lstat,
// for example for a link, which this package must resolve itself.
func (p *dirEntry) enter() error {
	if p.name == "." {
		return nil
	}
	if !p.isDir() {
		return sys.ENOTDIR
	}
	sub, err := p.dir.OpenRoot(p.name)
	if err != nil {
		return asChanged(err)
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

// target returns the target of the link: as written, and as a path relative to the mount.
func (p *dirEntry) target() (written, resolved string, err error) {
	written, err = p.dir.Readlink(p.name)
	if err != nil {
		return "", "", asChanged(err)
	}
	written = filepath.ToSlash(written)
	if path.IsAbs(written) {
		return "", "", errEscapes
	}
	return written, path.Join(path.Dir(p.path), written), nil
}

// asChanged maps an error at an entry that existed a moment ago to errChanged, unless the operating system had another
// reason to refuse.
func asChanged(err error) error {
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

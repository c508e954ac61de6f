package file

import (
	"io/fs"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
)

// guestFS implements sys.FS for one mount and one guest.
type guestFS struct {
	sys.UnimplementedFS
	m *Mount
	h *Handles
	// preopen is the mount's own directory. wazero opens it first and never closes it between calls.
	preopen *openDir
}

func (g *guestFS) Close() error {
	g.h.End()
	return nil
}

// modifyEntry calls do with the entry at a path, unless the mount is read-only.
func (g *guestFS) modifyEntry(path string, follow bool, do func(*dirEntry) error) sys.Errno {
	if !g.m.write {
		return g.h.errno(errReadOnly)
	}
	if err := g.h.spend(broker.ChangeSteps); err != nil {
		return g.h.errno(err)
	}
	return g.h.errno(g.m.withEntry(g.h, path, follow, do))
}

// Lstat implements sys.FS.
func (g *guestFS) Lstat(path string) (wsys.Stat_t, sys.Errno) { return g.stat(path, false) }

// Stat implements sys.FS.
func (g *guestFS) Stat(path string) (wsys.Stat_t, sys.Errno) { return g.stat(path, true) }

func (g *guestFS) stat(path string, follow bool) (st wsys.Stat_t, errno sys.Errno) {
	err := g.m.withEntry(g.h, path, follow, func(p *dirEntry) error {
		if p.info != nil {
			st = g.m.stat(p.info)
		}
		return p.mustExist()
	})
	return st, g.h.errno(err)
}

// Mkdir implements sys.FS. The mode is always 0755, less the umask.
func (g *guestFS) Mkdir(path string, _ fs.FileMode) sys.Errno {
	return g.modifyEntry(path, false, func(p *dirEntry) error {
		if p.info != nil {
			return sys.EEXIST
		}
		if err := p.checkModifiable(); err != nil {
			return err
		}
		return g.m.quota.add(g.h.ctx, func() error { return p.dir.Mkdir(p.name, 0o755) })
	})
}

// Chmod implements sys.FS. It always fails, so that no file written by a guest becomes executable.
func (g *guestFS) Chmod(path string, _ fs.FileMode) sys.Errno {
	return g.modifyEntry(path, true, func(p *dirEntry) error {
		if err := p.mustExist(); err != nil {
			return err
		}
		return sys.EPERM
	})
}

// Rmdir implements sys.FS.
func (g *guestFS) Rmdir(path string) sys.Errno {
	return g.modifyEntry(path, false, func(p *dirEntry) error {
		if err := p.mustExist(); err != nil {
			return err
		}
		if !p.isDir() {
			return sys.ENOTDIR
		}
		if err := p.checkModifiable(); err != nil {
			return err
		}
		return g.m.quota.remove(p, func() error { return p.dir.Remove(p.name) })
	})
}

// Unlink implements sys.FS. It removes a link itself, not its target.
func (g *guestFS) Unlink(path string) sys.Errno {
	return g.modifyEntry(path, false, func(p *dirEntry) error {
		if err := p.mustExist(); err != nil {
			return err
		}
		if p.isDir() {
			return sys.EISDIR
		}
		if err := p.checkModifiable(); err != nil {
			return err
		}
		return g.m.quota.remove(p, func() error { return p.dir.Remove(p.name) })
	})
}

// Link implements sys.FS. Guests may not create links.
func (g *guestFS) Link(_, path string) sys.Errno {
	return g.modifyEntry(path, false, func(*dirEntry) error { return errLink })
}

// Symlink implements sys.FS. Guests may not create links.
func (g *guestFS) Symlink(_, path string) sys.Errno {
	return g.modifyEntry(path, false, func(*dirEntry) error { return errLink })
}

// Readlink implements sys.FS. It does not reveal a target that is outside of the mount or hidden.
func (g *guestFS) Readlink(path string) (target string, errno sys.Errno) {
	err := g.m.withEntry(g.h, path, false, func(p *dirEntry) (err error) {
		target, err = g.m.readlink(p)
		return err
	})
	return target, g.h.errno(err)
}

// Utimens implements sys.FS.
func (g *guestFS) Utimens(path string, atim, mtim int64) sys.Errno {
	return g.modifyEntry(path, true, func(p *dirEntry) error {
		if err := p.mustExist(); err != nil {
			return err
		}
		return p.chtimes(atim, mtim)
	})
}

// chtimes sets the times of the file at the entry.
func (p *dirEntry) chtimes(atim, mtim int64) error {
	switch {
	case p.linked, p.isLink():
		return errThrough
	case p.info.Mode().IsRegular() && wsys.NewStat_t(p.info).Nlink > 1:
		return errShared
	case !p.info.Mode().IsRegular() && !p.isDir():
		return errSpecial
	}
	return p.dir.Chtimes(p.name, timeOf(atim), timeOf(mtim))
}

// timeOf converts a time for os.Chtimes, for which the zero time means no change.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == sys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

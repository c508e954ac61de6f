package file

import (
	"io/fs"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
)

// guestFS is a mount as one guest sees it.
type guestFS struct {
	sys.UnimplementedFS
	m *Mount
	h *Handles
	// preopen is the mount's own directory, which wazero opens before anything else and keeps.
	preopen *openDir
}

// Close ends the handles.
func (g *guestFS) Close() error {
	g.h.End()
	return nil
}

// modify runs do at the place of a path that names what to change, unless the mount is read-only.
func (g *guestFS) modify(path string, follow bool, do func(*place) error) sys.Errno {
	if !g.m.write {
		return g.h.errno(errReadOnly)
	}
	if err := g.h.spend(broker.ChangeSteps); err != nil {
		return g.h.errno(err)
	}
	return g.h.errno(g.m.at(g.h, path, follow, do))
}

// Lstat implements sys.FS.
func (g *guestFS) Lstat(path string) (wsys.Stat_t, sys.Errno) { return g.stat(path, false) }

// Stat implements sys.FS.
func (g *guestFS) Stat(path string) (wsys.Stat_t, sys.Errno) { return g.stat(path, true) }

func (g *guestFS) stat(path string, follow bool) (st wsys.Stat_t, errno sys.Errno) {
	err := g.m.at(g.h, path, follow, func(p *place) error {
		if p.info != nil {
			st = g.m.stat(p.info)
		}
		return p.exists()
	})
	return st, g.h.errno(err)
}

// Mkdir implements sys.FS. The mode is always 0755, less the umask.
func (g *guestFS) Mkdir(path string, _ fs.FileMode) sys.Errno {
	return g.modify(path, false, func(p *place) error {
		if p.info != nil {
			return sys.EEXIST
		}
		if err := p.changeable(); err != nil {
			return err
		}
		return g.m.quota.add(g.h.ctx, func() error { return p.dir.Mkdir(p.name, 0o755) })
	})
}

// Chmod implements sys.FS. Modes are the operator's business: nothing a guest wrote becomes executable.
func (g *guestFS) Chmod(path string, _ fs.FileMode) sys.Errno {
	return g.modify(path, true, func(p *place) error {
		if err := p.exists(); err != nil {
			return err
		}
		return sys.EPERM
	})
}

// Rmdir implements sys.FS.
func (g *guestFS) Rmdir(path string) sys.Errno {
	return g.modify(path, false, func(p *place) error {
		if err := p.exists(); err != nil {
			return err
		}
		if !p.isDir() {
			return sys.ENOTDIR
		}
		if err := p.changeable(); err != nil {
			return err
		}
		return g.m.quota.remove(p, func() error { return p.dir.Remove(p.name) })
	})
}

// Unlink implements sys.FS. It removes links themselves, not what they point to.
func (g *guestFS) Unlink(path string) sys.Errno {
	return g.modify(path, false, func(p *place) error {
		if err := p.exists(); err != nil {
			return err
		}
		if p.isDir() {
			return sys.EISDIR
		}
		if err := p.changeable(); err != nil {
			return err
		}
		return g.m.quota.remove(p, func() error { return p.dir.Remove(p.name) })
	})
}

// Link implements sys.FS. Guests create no links.
func (g *guestFS) Link(_, path string) sys.Errno {
	return g.modify(path, false, func(*place) error { return errLink })
}

// Symlink implements sys.FS. Guests create no links.
func (g *guestFS) Symlink(_, path string) sys.Errno {
	return g.modify(path, false, func(*place) error { return errLink })
}

// Readlink implements sys.FS. A target outside of the mount, or hidden in it, is not told.
func (g *guestFS) Readlink(path string) (target string, errno sys.Errno) {
	err := g.m.at(g.h, path, false, func(p *place) (err error) {
		target, err = g.m.readlink(p)
		return err
	})
	return target, g.h.errno(err)
}

// Utimens implements sys.FS.
func (g *guestFS) Utimens(path string, atim, mtim int64) sys.Errno {
	return g.modify(path, true, func(p *place) error {
		if err := p.exists(); err != nil {
			return err
		}
		return p.chtimes(atim, mtim)
	})
}

// chtimes sets the times of the file at the place.
func (p *place) chtimes(atim, mtim int64) error {
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

// timeOf is the time for os.Chtimes, whose zero leaves a time as it is.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == sys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

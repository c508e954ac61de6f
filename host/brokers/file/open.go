package file

import (
	"io/fs"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/broker"
)

// OpenFile implements sys.FS. The mode of a new file is always 0644, less the umask.
func (g *guestFS) OpenFile(path string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	if g.preopen == nil {
		g.preopen = &openDir{g: g}
		g.h.roots = append(g.h.roots, g.preopen)
		return g.preopen, 0
	}
	f, err := g.open(path, flag)
	if err != nil {
		return nil, g.h.errno(err)
	}
	return f, 0
}

const modifies = sys.O_WRONLY | sys.O_RDWR | sys.O_CREAT | sys.O_TRUNC | sys.O_APPEND

func (g *guestFS) open(path string, flag sys.Oflag) (f sys.File, err error) {
	if flag&modifies != 0 && !g.m.write {
		return nil, errReadOnly
	}
	if len(g.h.open) >= g.h.limit {
		return nil, wasiEMFILE
	}
	exclusive := flag&sys.O_CREAT != 0 && flag&sys.O_EXCL != 0
	err = g.m.withEntry(g.h, path, flag&sys.O_NOFOLLOW == 0 && !exclusive, func(p *dirEntry) (err error) {
		switch {
		case p.info == nil && flag&sys.O_CREAT == 0:
			return sys.ENOENT
		case p.info == nil:
			f, err = g.create(p, flag)
			return err
		case exclusive:
			return sys.EEXIST
		case p.isDir():
			f, err = g.openDir(p, flag)
			return err
		case flag&sys.O_DIRECTORY != 0:
			return sys.ENOTDIR
		}
		f, err = g.openFile(p, flag)
		return err
	})
	return f, err
}

// create creates a file. O_EXCL keeps it from following a link that appeared since the walk.
func (g *guestFS) create(p *dirEntry, flag sys.Oflag) (sys.File, error) {
	if err := p.checkModifiable(); err != nil {
		return nil, err
	}
	if err := g.h.spend(broker.ChangeSteps); err != nil {
		return nil, err
	}
	var f *os.File
	err := g.m.quota.add(g.h.ctx, func() (err error) {
		f, err = p.dir.OpenFile(p.name, access(flag)|os.O_CREATE|os.O_EXCL, 0o644)
		return err
	})
	if os.IsExist(err) {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	o, err := g.track(p, f, flag)
	if err != nil {
		return nil, err
	}
	if o.node.id != (fileID{}) && len(g.h.created) < maxCreated {
		g.h.created[o.node.id] = struct{}{}
	}
	return o, nil
}

// maxCreated is the number of new files of a call that are remembered for Handles.created.
const maxCreated = 4096

func (g *guestFS) openDir(p *dirEntry, flag sys.Oflag) (sys.File, error) {
	if flag&modifies != 0 {
		return nil, sys.EISDIR
	}
	d := &openDir{g: g, path: p.path}
	g.h.open[d] = struct{}{}
	return d, nil
}

// openFile opens an existing file. It must be the file that the walk found, and still be a regular file.
func (g *guestFS) openFile(p *dirEntry, flag sys.Oflag) (sys.File, error) {
	switch {
	case p.isLink():
		return nil, sys.ELOOP
	case !p.info.Mode().IsRegular():
		return nil, errSpecial
	case p.linked && flag&modifies != 0:
		return nil, errThrough
	}
	f, err := p.dir.OpenFile(p.name, access(flag), 0)
	if err != nil {
		return nil, asChanged(err)
	}
	if err := verify(p, f, flag&modifies != 0); err != nil {
		_ = f.Close() // Nothing was written.
		return nil, err
	}
	opened, err := g.track(p, f, flag)
	if err != nil {
		return nil, err
	}
	if flag&sys.O_TRUNC != 0 {
		err = opened.resize(0)
	}
	if err != nil {
		_ = opened.Close() // Nothing was written.
		return nil, err
	}
	return opened, nil
}

// verify checks that f is the file of the entry, and with write that a guest may write to it.
func verify(p *dirEntry, f *os.File, write bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, p.info) || !info.Mode().IsRegular() {
		return errChanged
	}
	if !write {
		return nil
	}
	links, err := hardLinks(f, info)
	if err == nil && (links > 1 || info.Mode()&0o111 != 0) {
		err = errShared
	}
	return err
}

// track adds an open file to the guest's handles.
func (g *guestFS) track(p *dirEntry, f *os.File, flag sys.Oflag) (*openFile, error) {
	n, err := g.m.quota.usage.openNode(f)
	if err != nil {
		return nil, err
	}
	o := &openFile{g: g, path: p.path, file: f, node: n, append: flag&sys.O_APPEND != 0}
	o.read, o.write = flag&sys.O_WRONLY == 0, flag&(sys.O_WRONLY|sys.O_RDWR) != 0
	g.h.open[o] = struct{}{}
	return o, nil
}

// access converts the guest's access mode to the host's flags. Truncating and appending are done by this package, where
// the quota counts them.
func access(flag sys.Oflag) int {
	switch {
	case flag&sys.O_RDWR != 0, flag&sys.O_TRUNC != 0:
		return os.O_RDWR | nonblock
	case flag&sys.O_WRONLY != 0:
		return os.O_WRONLY | nonblock
	}
	return os.O_RDONLY | nonblock
}

package file

import (
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
)

// Rename implements sys.FS. Both names are held by their directories while one becomes the other, so neither can be led
// elsewhere meanwhile.
func (g *guestFS) Rename(from, to string) sys.Errno {
	return g.modify(from, false, func(source *place) error {
		if err := source.exists(); err != nil {
			return err
		}
		return g.m.at(g.h, to, false, func(target *place) error { return g.rename(source, target) })
	})
}

func (g *guestFS) rename(source, target *place) error {
	for _, p := range []*place{source, target} {
		if err := p.changeable(); err != nil {
			return err
		}
	}
	switch {
	case source.isLink():
		return errThrough // Elsewhere it would point elsewhere.
	case source.isDir():
		if err := g.hidesNothing(source); err != nil {
			return err
		}
	}
	return g.m.quota.move(g.h.ctx, source, target, func() error {
		if err := keepPrivate(source, target); err != nil {
			return err
		}
		return rename(source, target)
	})
}

// keepPrivate takes from a file the permissions that the one it replaces does not give: guests write by replacing, and what
// only its owner could read must stay so.
func keepPrivate(source, target *place) error {
	if target.info == nil || !target.info.Mode().IsRegular() || !source.info.Mode().IsRegular() {
		return nil
	}
	mode := source.info.Mode().Perm() & target.info.Mode().Perm()
	if mode == source.info.Mode().Perm() || wsys.NewStat_t(source.info).Nlink > 1 {
		return nil
	}
	return source.dir.Chmod(source.name, mode)
}

// hidesNothing is an error if a deny glob hides something below a directory: under another name it would come to light.
func (g *guestFS) hidesNothing(p *place) error {
	if len(g.m.deny) == 0 {
		return nil
	}
	dir, err := p.dir.OpenRoot(p.name)
	if err != nil {
		return changed(err)
	}
	defer dir.Close()
	above := p.path + "/"
	return walkTree(dir, func(names []string, _ fs.FileMode, _ int64) error {
		name := above + strings.Join(names, "/")
		if err := g.h.spend(broker.FileSteps + g.m.deny.cost(name)); err != nil {
			return err
		}
		if g.m.deny.match(name) {
			return sys.EACCES
		}
		return nil
	})
}

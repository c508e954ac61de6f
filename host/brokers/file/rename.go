package file

import (
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
)

// Rename implements sys.FS. Both parent directories are open during the rename, so neither path can be redirected
// meanwhile.
func (g *guestFS) Rename(from, to string) sys.Errno {
	return g.modifyEntry(from, false, func(source *dirEntry) error {
		if err := source.mustExist(); err != nil {
			return err
		}
		return g.m.withEntry(g.h, to, false, func(target *dirEntry) error { return g.rename(source, target) })
	})
}

func (g *guestFS) rename(source, target *dirEntry) error {
	for _, p := range []*dirEntry{source, target} {
		if err := p.checkModifiable(); err != nil {
			return err
		}
	}
	switch {
	case source.isLink():
		return errThrough // A relative target would change.
	case source.isDir():
		if err := g.checkNothingHidden(source, target); err != nil {
			return err
		}
	}
	return g.m.quota.move(g.h.ctx, source, target, func() error {
		if err := restrictMode(source, target); err != nil {
			return err
		}
		return rename(source, target)
	})
}

// restrictMode removes the permissions from source that the replaced file does not have. Guests often write a file by
// replacing it, and a private file must stay private.
func restrictMode(source, target *dirEntry) error {
	if target.info == nil || !target.info.Mode().IsRegular() || !source.info.Mode().IsRegular() {
		return nil
	}
	mode := source.info.Mode().Perm() & target.info.Mode().Perm()
	if mode == source.info.Mode().Perm() || wsys.NewStat_t(source.info).Nlink > 1 {
		return nil
	}
	return source.dir.Chmod(source.name, mode)
}

// checkNothingHidden returns an error if a deny glob hides a file below the directory source, which would be visible
// under its new name, or would hide it there: nothing is put under a hidden name.
func (g *guestFS) checkNothingHidden(source, target *dirEntry) error {
	if len(g.m.deny) == 0 {
		return nil
	}
	dir, err := source.dir.OpenRoot(source.name)
	if err != nil {
		return asChanged(err)
	}
	defer dir.Close()
	return walkTree(dir, func(names []string, _ fs.FileMode, _ int64) error {
		below := "/" + strings.Join(names, "/")
		for _, name := range []string{source.path + below, target.path + below} {
			if err := g.h.spend(broker.FileSteps + g.m.deny.cost(name)); err != nil {
				return err
			}
			if g.m.deny.match(name) {
				return sys.EACCES
			}
		}
		return nil
	})
}

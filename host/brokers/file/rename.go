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
		if err := g.takeOver(source, target); err != nil {
			return err
		}
		return rename(source, target)
	})
}

// takeOver gives source what belongs to the file that it replaces. Guests often write a file by replacing it: a file
// that the guest has created in this call gets mode, owner, group, ACL and user attributes of the other, without the
// executable bits. What cannot be kept is recorded in Handles. Any other file loses the permissions that the replaced
// one does not have, because a private file must stay private.
func (g *guestFS) takeOver(source, target *dirEntry) error {
	if target.info == nil || !target.info.Mode().IsRegular() || !source.info.Mode().IsRegular() ||
		wsys.NewStat_t(source.info).Nlink > 1 {
		return nil
	}
	if _, own := g.h.created[idOf(source.info)]; own {
		lost, err := copyAttributes(source, target)
		if len(lost) > 0 {
			g.h.unkept = append(g.h.unkept, Unkept{Path: g.m.GuestPath() + "/" + target.path, Attributes: lost})
		}
		return err
	}
	mode := source.info.Mode().Perm() & target.info.Mode().Perm()
	if mode == source.info.Mode().Perm() {
		return nil
	}
	return source.dir.Chmod(source.name, mode)
}

// replacedMode returns the permissions of a file that replaces one with these.
func replacedMode(old fs.FileMode) fs.FileMode { return old.Perm() &^ 0o111 }

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

package file

import (
	"cmp"
	"context"
	"io/fs"
	"math"
	"os"

	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/grant"
)

// quota limits the files below a mount: the sum of their sizes, holes included, counted once per name, and the number
// of names. It is exact for changes by guests of this process. Changes by others count from the next measurement on.
type quota struct {
	limit   int64 // bytes; math.MaxInt64 for none
	entries int64 // names
	usage   *usage
}

func newQuota(m grant.Mount, root *os.Root) (quota, error) {
	u, err := acquireUsage(root)
	if err != nil {
		return quota{}, err
	}
	limit := cmp.Or(m.Quota, math.MaxInt64)
	return quota{limit: limit, entries: max(minEntries, limit/bytesPerEntry), usage: u}, nil
}

// A mount with a quota has room for one name for each bytesPerEntry bytes of it, and at least for minEntries.
const (
	bytesPerEntry = 4 << 10
	minEntries    = 1000
)

func (q quota) limited() bool { return q.limit != math.MaxInt64 }

func (q quota) close() { q.usage.release() }

// lock locks the usage, with a quota when it is measured. The caller unlocks it.
func (q quota) lock(ctx context.Context) error {
	if q.limited() {
		if err := q.usage.wait(ctx); err != nil {
			return err
		}
	}
	q.usage.mu.Lock()
	return nil
}

// change runs do, which changes the size of f to at most end(size before). If the quota has no room for the growth, it
// returns EDQUOT and does not call do. Changes below one directory are serialized, so concurrent guests cannot exceed
// the quota together.
func (q quota) change(ctx context.Context, n *node, f *os.File, end func(size int64) int64,
	do func(size int64) error) error {
	u := q.usage
	if err := q.lock(ctx); err != nil {
		return err
	}
	defer u.mu.Unlock()
	before, err := size(f)
	if err != nil {
		return err
	}
	if growth := end(before) - before; growth > 0 && q.limited() {
		u.remeasureLocked()
		if growth > q.limit-u.usedLocked().bytes {
			return wasiEDQUOT
		}
	}
	err = do(before)
	if after, sizeErr := size(f); sizeErr == nil {
		u.countLocked(n, after-before)
	}
	return err
}

// add runs do, which creates a name. It returns EDQUOT if the quota has no room for another name.
func (q quota) add(ctx context.Context, do func() error) error {
	u := q.usage
	if err := q.lock(ctx); err != nil {
		return err
	}
	defer u.mu.Unlock()
	if q.limited() && u.usedLocked().entries >= q.entries {
		u.remeasureLocked()
		return wasiEDQUOT
	}
	if err := do(); err != nil {
		return err
	}
	u.addedLocked()
	return nil
}

// remove runs do, which removes the entry p.
func (q quota) remove(p *dirEntry, do func() error) error {
	u := q.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.replaceLocked(p, nil, do)
}

// move runs do, which renames source to target.
func (q quota) move(ctx context.Context, source, target *dirEntry, do func() error) error {
	u := q.usage
	if err := q.lock(ctx); err != nil {
		return err
	}
	defer u.mu.Unlock()
	if err := u.replaceLocked(target, source.info, do); err != nil {
		return err
	}
	u.movedLocked(source.info)
	return nil
}

func size(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// fileID identifies a file. It is zero where the system has no inode numbers.
type fileID struct{ dev, ino uint64 }

func idOf(info fs.FileInfo) fileID {
	st := wsys.NewStat_t(info)
	if st.Ino == 0 {
		return fileID{}
	}
	return fileID{st.Dev, st.Ino}
}

// node is a file that guests have open. Without a name its bytes count until the last handle is closed.
type node struct {
	id       fileID
	handles  int
	orphaned bool
}

package wasi

import (
	"hash/maphash"
	"io/fs"
	"time"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/wasm/component"
)

func (h *host) getFlags(c caller, d descriptor) any {
	return h.at(c, d, func(n *node) (any, error) { return n.flags, nil })
}

func (h *host) getType(c caller, d descriptor) any {
	return h.at(c, d, func(n *node) (any, error) {
		st, errno := n.file.Stat()
		return fileType(st.Mode), n.files.failure(errno)
	})
}

// fileType returns a descriptor-type.
func fileType(mode fs.FileMode) component.Case {
	number := uint32(0)
	switch mode.Type() {
	case 0:
		number = 6 // regular-file
	case fs.ModeDir:
		number = 3
	case fs.ModeSymlink:
		number = 5
	case fs.ModeDevice:
		number = 1
	case fs.ModeDevice | fs.ModeCharDevice:
		number = 2
	case fs.ModeNamedPipe:
		number = 4
	case fs.ModeSocket:
		number = 7
	}
	return component.Case{Number: number}
}

func (h *host) stat(c caller, d descriptor) any {
	return h.at(c, d, func(n *node) (any, error) {
		st, errno := n.file.Stat()
		return descriptorStat(&st), n.files.failure(errno)
	})
}

func (h *host) statAt(c caller, d descriptor, links uint32, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) {
		st, err := n.statAt(links, path)
		return descriptorStat(&st), err
	})
}

func (n *node) statAt(links uint32, path string) (file.Stat, error) {
	stat := n.fs.Lstat
	if links&followSymlinks != 0 {
		stat = n.fs.Stat
	}
	st, errno := stat(path)
	return st, n.files.failure(errno)
}

// descriptorStat returns a descriptor-stat.
func descriptorStat(st *file.Stat) []any {
	stat := []any{fileType(st.Mode), st.Nlink, uint64(max(0, st.Size))}
	for _, at := range []int64{st.Atim, st.Mtim, st.Ctim} {
		stat = append(stat, component.Some(datetime(time.Unix(0, at))))
	}
	return stat
}

func (h *host) setTimes(c caller, d descriptor, accessed, modified component.Case) any {
	return h.at(c, d, func(n *node) (any, error) {
		atime, mtime, err := h.newTimes(accessed, modified)
		if err != nil {
			return nil, err
		}
		return n.done(n.file.Utimens(atime, mtime))
	})
}

func (h *host) setTimesAt(c caller, d descriptor, _ uint32, path string, accessed, modified component.Case) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) {
		atime, mtime, err := h.newTimes(accessed, modified)
		if err != nil {
			return nil, err
		}
		return n.done(n.fs.Utimens(path, atime, mtime))
	})
}

// newTimes converts two new-timestamps to times of package file.
func (h *host) newTimes(accessed, modified component.Case) (atime, mtime int64, err error) {
	if atime, err = h.newTime(accessed); err == nil {
		mtime, err = h.newTime(modified)
	}
	return atime, mtime, err
}

func (h *host) newTime(timestamp component.Case) (int64, error) {
	switch timestamp.Number {
	case 0: // no-change
		return file.KeepTime, nil
	case 1: // now
		return h.Now().UnixNano(), nil
	}
	at, ok := nanoseconds(arg[[]any]([]any{timestamp.Value}, 0))
	if !ok {
		return 0, errInvalid
	}
	return at, nil
}

// isSameObject is false if an error keeps the host from comparing the files.
func (h *host) isSameObject(c caller, a, b descriptor) any {
	f := h.files(c)
	first, err := a.open(f)
	if err != nil {
		return false
	}
	second, err := b.open(f)
	if err != nil || first.mount != second.mount {
		return false
	}
	st1, errno1 := first.file.Stat()
	st2, errno2 := second.file.Stat()
	return errno1 == 0 && errno2 == 0 && st1.Ino == st2.Ino && (st1.Ino != 0 || first.path == second.path)
}

func (h *host) metadataHash(c caller, d descriptor) any {
	return h.at(c, d, func(n *node) (any, error) {
		st, errno := n.file.Stat()
		return h.hash(n.mount, &st), n.files.failure(errno)
	})
}

func (h *host) metadataHashAt(c caller, d descriptor, links uint32, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) {
		st, err := n.statAt(links, path)
		return h.hash(n.mount, &st), err
	})
}

// hash returns a metadata-hash-value. Its lower half identifies the file, because C libraries take it for the inode
// number. The upper half changes with the file.
func (h *host) hash(mount int, st *file.Stat) []any {
	type identity struct {
		mount int
		inode uint64
	}
	type state struct {
		identity
		size, modified int64
	}
	id := identity{mount, st.Ino}
	return []any{maphash.Comparable(h.seed, id), maphash.Comparable(h.seed, state{id, st.Size, st.Mtim})}
}

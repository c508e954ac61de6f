package file

import (
	"io"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// openFile is a regular file that a guest has open. It tracks the position itself and passes an offset with each read
// and write, so that appending and the quota know where a write ends.
type openFile struct {
	sys.UnimplementedFile
	g      *guestFS
	path   string // relative to the mount, at the time of opening
	file   *os.File
	node   *node
	read   bool
	write  bool
	append bool
	pos    int64
}

// offset is a number of bytes. The alias keeps go vet from reporting Seek as a wrong io.Seeker: wazero's Seek has
// another error type.
type offset = int64

// Stat implements sys.File.
func (o *openFile) Stat() (wsys.Stat_t, sys.Errno) {
	if err := o.spend(0); err != nil {
		return wsys.Stat_t{}, o.g.h.errno(err)
	}
	info, err := o.file.Stat()
	if err != nil {
		return wsys.Stat_t{}, o.g.h.errno(err)
	}
	return o.g.m.stat(info), 0
}

// Dev implements sys.File.
func (o *openFile) Dev() (uint64, sys.Errno) {
	st, errno := o.Stat()
	return st.Dev, errno
}

// Ino implements sys.File.
func (o *openFile) Ino() (wsys.Inode, sys.Errno) {
	st, errno := o.Stat()
	return st.Ino, errno
}

// IsAppend implements sys.File.
func (o *openFile) IsAppend() bool { return o.append }

// SetAppend implements sys.File.
func (o *openFile) SetAppend(enable bool) sys.Errno {
	o.append = enable
	return 0
}

// MaxTransfer limits the bytes of one read or write.
const MaxTransfer = 1 << 20

// spend charges for an operation that moves n bytes.
func (o *openFile) spend(n int) error {
	return o.g.h.spend(broker.FileSteps + fuel.CopySteps(uint64(n)))
}

// Read implements sys.File.
func (o *openFile) Read(buf []byte) (int, sys.Errno) {
	n, errno := o.Pread(buf, o.pos)
	o.pos += int64(n)
	return n, errno
}

// Pread implements sys.File.
func (o *openFile) Pread(buf []byte, off int64) (int, sys.Errno) {
	switch {
	case !o.read:
		return 0, sys.EBADF
	case off < 0:
		return 0, sys.EINVAL
	case len(buf) == 0:
		return 0, 0
	}
	buf = buf[:min(len(buf), MaxTransfer)]
	if err := o.spend(len(buf)); err != nil {
		return 0, o.g.h.errno(err)
	}
	n, err := o.file.ReadAt(buf, off)
	return n, o.g.h.errno(err)
}

// Seek implements sys.File.
func (o *openFile) Seek(by offset, whence int) (int64, sys.Errno) {
	var from int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		from = o.pos
	case io.SeekEnd:
		end, err := size(o.file)
		if err != nil {
			return 0, o.g.h.errno(err)
		}
		from = end
	default:
		return 0, sys.EINVAL
	}
	to := from + by
	if to < 0 || by > 0 && to < from {
		return 0, sys.EINVAL
	}
	o.pos = to
	return to, 0
}

// Write implements sys.File.
func (o *openFile) Write(buf []byte) (n int, errno sys.Errno) {
	buf = buf[:min(len(buf), MaxTransfer)]
	if !o.append {
		n, errno = o.Pwrite(buf, o.pos)
		o.pos += int64(n)
		return n, errno
	}
	err := o.checkWritable()
	if err == nil && len(buf) > 0 {
		err = o.change(len(buf), func(size int64) int64 { return size + int64(len(buf)) },
			func(size int64) (err error) {
				n, err = o.file.WriteAt(buf, size)
				o.pos = size + int64(n)
				return err
			})
	}
	return n, o.g.h.errno(err)
}

// Pwrite implements sys.File.
func (o *openFile) Pwrite(buf []byte, off int64) (n int, errno sys.Errno) {
	buf = buf[:min(len(buf), MaxTransfer)]
	err := o.checkWritable()
	switch {
	case err != nil:
	case off < 0:
		err = sys.EINVAL
	case off > math.MaxInt64-int64(len(buf)):
		err = wasiEFBIG
	case len(buf) > 0:
		err = o.change(len(buf), func(int64) int64 { return off + int64(len(buf)) }, func(int64) (err error) {
			n, err = o.file.WriteAt(buf, off)
			return err
		})
	}
	return n, o.g.h.errno(err)
}

// Truncate implements sys.File.
func (o *openFile) Truncate(size int64) sys.Errno {
	err := o.checkWritable()
	switch {
	case err != nil:
	case size < 0:
		err = sys.EINVAL
	default:
		err = o.resize(size)
	}
	return o.g.h.errno(err)
}

func (o *openFile) resize(size int64) error {
	return o.change(0, func(int64) int64 { return size }, func(int64) error { return o.file.Truncate(size) })
}

// change charges for n bytes and calls quota.change for this file.
func (o *openFile) change(n int, end func(size int64) int64, do func(size int64) error) error {
	if err := o.spend(n); err != nil {
		return err
	}
	return o.g.m.quota.change(o.g.h.ctx, o.node, o.file, end, do)
}

// checkWritable returns an error unless the file was opened for writing.
func (o *openFile) checkWritable() error {
	switch {
	case !o.g.m.write:
		return errReadOnly
	case !o.write:
		return sys.EBADF
	}
	return nil
}

// Sync implements sys.File.
func (o *openFile) Sync() sys.Errno {
	if err := o.g.h.spend(broker.SyncSteps); err != nil {
		return o.g.h.errno(err)
	}
	return o.g.h.errno(o.file.Sync())
}

// Datasync implements sys.File.
func (o *openFile) Datasync() sys.Errno { return o.Sync() }

// Utimens implements sys.File. It returns ENOENT if the file is no longer at the path of its opening.
func (o *openFile) Utimens(atim, mtim int64) sys.Errno {
	return o.g.modifyEntry(o.path, false, func(p *dirEntry) error {
		info, err := o.file.Stat()
		switch {
		case err != nil:
			return err
		case p.info == nil || !os.SameFile(info, p.info):
			return sys.ENOENT
		}
		return p.chtimes(atim, mtim)
	})
}

// Close implements sys.File. It may be called twice.
func (o *openFile) Close() sys.Errno {
	if !o.g.h.remove(o) {
		return 0
	}
	return o.g.h.errno(o.release())
}

func (o *openFile) release() error { return o.g.m.quota.usage.closeNode(o.node, o.file) }

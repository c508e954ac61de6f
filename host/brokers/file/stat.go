package file

import (
	"hash/maphash"
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// stat returns what a guest may know about a file: type, size and times. Device and inode numbers are replaced by one
// number per file and mount, which shows whether two paths lead to the same file.
func (m *Mount) stat(info fs.FileInfo) wsys.Stat_t {
	st := wsys.NewStat_t(info)
	if st.Ino != 0 {
		st.Ino = maphash.Comparable(m.seed, fileID{st.Dev, st.Ino})
	}
	st.Dev, st.Nlink = 1, 1
	if st.Mode.IsDir() {
		st.Size = 0
	}
	return st
}

// readlink returns the target of a link as written. It fails if the target is outside of the mount or hidden.
func (m *Mount) readlink(p *dirEntry) (string, error) {
	if err := p.mustExist(); err != nil {
		return "", err
	}
	if !p.isLink() {
		return "", sys.EINVAL
	}
	written, target, err := p.target()
	if err != nil {
		return "", err
	}
	parts, err := split(target)
	if err != nil {
		return "", err
	}
	for i := range parts {
		above := strings.Join(parts[:i+1], "/")
		if err := p.h.spend(m.deny.cost(above)); err != nil {
			return "", err
		}
		if m.deny.match(above) {
			return "", errHidden
		}
	}
	return written, nil
}

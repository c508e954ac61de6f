package file

import (
	"hash/maphash"
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// stat is what a guest learns about a file: type, size and times. In place of device and inode numbers it gets one number per
// file that differs from mount to mount, enough to tell whether two paths lead to the same file.
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

// readlink is the target of the link at a place, as it is written there. It must be inside and not hidden.
func (m *Mount) readlink(p *place) (string, error) {
	if err := p.exists(); err != nil {
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

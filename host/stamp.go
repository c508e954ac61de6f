package host

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// stamp changes when a plugin's file or one of manifest.SidePaths changes.
type stamp struct {
	Wasm   fileStamp
	Beside [4]fileStamp
}

// fileStamp identifies a version of a file. Times are Unix nanoseconds.
type fileStamp struct {
	Size, Modified int64
	// Changed and Inode are zero on systems without them. Unlike Modified, programs cannot set them.
	Changed int64
	Inode   uint64
}

func (s source) stamp() (stamp, error) {
	if s.shipped() {
		return stamp{}, nil
	}
	var now stamp
	var err error
	if now.Wasm, err = stampOf(s.path); err != nil {
		return stamp{}, err
	}
	for i, path := range manifest.SidePaths(s.path) {
		if now.Beside[i], err = stampOf(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stamp{}, err
		}
	}
	return now, nil
}

// latest returns the last change of any of the files.
func (s stamp) latest() time.Time {
	last := max(s.Wasm.Modified, s.Wasm.Changed)
	for _, file := range s.Beside {
		last = max(last, file.Modified, file.Changed)
	}
	return time.Unix(0, last)
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	changed, inode := identify(info)
	return fileStamp{info.Size(), info.ModTime().UnixNano(), changed, inode}, nil
}

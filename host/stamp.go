package host

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// stamp changes when a plugin's file or its separate manifest changes.
type stamp struct {
	Wasm, Manifest fileStamp
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
	wasm, err := stampOf(s.path)
	if err != nil {
		return stamp{}, err
	}
	beside, err := stampOf(manifestPath(s.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stamp{}, err
	}
	return stamp{wasm, beside}, nil
}

// latest returns the last change of either file.
func (s stamp) latest() time.Time {
	return time.Unix(0, max(s.Wasm.Modified, s.Wasm.Changed, s.Manifest.Modified, s.Manifest.Changed))
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	changed, inode := identify(info)
	return fileStamp{info.Size(), info.ModTime().UnixNano(), changed, inode}, nil
}

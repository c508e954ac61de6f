package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// fileStamp identifies a state of a file. A change shows even if the new contents have the time of the old ones.
type fileStamp struct {
	modified time.Time
	size     int64
	target   string // of its links: Kubernetes replaces a mounted secret by changing a link
	// err is why the file cannot be examined, other than that it is missing.
	err string
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileStamp{}
	case err != nil:
		return fileStamp{err: err.Error()}
	}
	target, _ := filepath.EvalSymlinks(path)
	return fileStamp{modified: info.ModTime(), size: info.Size(), target: target}
}

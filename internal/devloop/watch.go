package devloop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// interval is the time between two looks at the sources. Looking works on every file system and with every editor: a
// file that was replaced is a changed file.
const interval = 100 * time.Millisecond

// maxFiles bounds the files of a plugin's folder. With more, something else than sources is in it.
const maxFiles = 20_000

// outputs are folders that builds write. Names that begin with a dot are ignored too.
var outputs = []string{"dist", "build", "target", "node_modules", "__pycache__"}

// stamp tells versions of a file apart.
type stamp struct {
	size     int64
	modified time.Time
}

// watcher notices changes of the files below dir.
type watcher struct {
	dir   string
	files map[string]stamp
	// saved is the time at which the newest of the changed files was written.
	saved time.Time
}

func newWatcher(dir string) (*watcher, error) {
	files, err := scan(dir)
	return &watcher{dir: dir, files: files}, err
}

// next waits for a change, and then until nothing has changed for an interval: editors and version control write many
// files at once.
func (w *watcher) next(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	changed := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		files, err := scan(w.dir)
		if err != nil {
			return err
		}
		if maps.Equal(files, w.files) {
			if changed {
				return nil
			}
			continue
		}
		w.saved = time.Time{}
		for path, now := range files {
			if now != w.files[path] && now.modified.After(w.saved) {
				w.saved = now.modified
			}
		}
		w.files, changed = files, true
	}
}

// scan returns the sources in dir.
func scan(dir string) (map[string]stamp, error) {
	files := map[string]stamp{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != dir:
			return nil // removed meanwhile
		case err != nil:
			return err
		case path == dir:
			return nil
		case entry.IsDir() && (slices.Contains(outputs, entry.Name()) || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || temporary(entry.Name()):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if files[path] = (stamp{info.Size(), info.ModTime()}); len(files) > maxFiles {
			return fmt.Errorf("%s has more than %d files: name the folder of one plugin", dir, maxFiles)
		}
		return nil
	})
	return files, err
}

// temporary reports whether a file is one that editors write beside the sources.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || name == "4913" // vim's
}

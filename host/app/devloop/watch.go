package devloop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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

// stamp distinguishes versions of a file.
type stamp struct {
	size     int64
	modified time.Time
}

// watcher notices changes of the sources below dir and of the settings.
type watcher struct {
	dir      string
	settings *Settings
	others   map[string]bool  // files and directories that are or were no sources: Settings.files
	files    map[string]stamp // the sources
	beside   map[string]stamp // the files of the settings
	// saved is the time at which the newest of the changed files was written.
	saved time.Time
}

func newWatcher(dir string, settings *Settings) (*watcher, error) {
	w := &watcher{dir: dir, settings: settings, others: map[string]bool{}}
	var err error
	w.files, w.beside, err = w.look()
	return w, err
}

// look returns the sources and the files of the settings.
func (w *watcher) look() (files, beside map[string]stamp, err error) {
	watched, others := w.settings.files()
	for _, path := range slices.Concat(watched, others) {
		if path == w.dir || w.others[path] {
			continue
		}
		w.others[path] = true
		maps.DeleteFunc(w.files, func(file string, _ stamp) bool {
			return file == path || strings.HasPrefix(file, path+string(filepath.Separator))
		})
	}
	if files, err = scan(w.dir, w.others); err != nil {
		return nil, nil, err
	}
	beside = map[string]stamp{}
	for _, path := range watched {
		if info, err := os.Stat(path); err == nil { // reading says what is wrong
			beside[path] = stamp{info.Size(), info.ModTime()}
		}
	}
	return files, beside, nil
}

// next waits for a change, and then until nothing has changed for an interval: editors and version control write many
// files at once. It returns what Settings.changes says.
func (w *watcher) next(ctx context.Context) (changes string, err error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	saved := w.saved
	sources, settings := false, false
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ticker.C:
		}
		files, beside, err := w.look()
		if err != nil {
			return "", err
		}
		if maps.Equal(files, w.files) && maps.Equal(beside, w.beside) {
			if settings {
				changes = w.settings.changes()
				settings = false
			}
			if sources || changes != "" {
				w.saved = saved
				return changes, nil
			}
			continue
		}
		sources = sources || !maps.Equal(files, w.files)
		settings = settings || !maps.Equal(beside, w.beside)
		saved = newest(newest(time.Time{}, files, w.files), beside, w.beside)
		w.files, w.beside = files, beside
	}
}

// newest returns when the newest of the changed files was written, or at if that is later.
func newest(at time.Time, now, before map[string]stamp) time.Time {
	for path, file := range now {
		if file != before[path] && file.modified.After(at) {
			at = file.modified
		}
	}
	return at
}

// scan returns the sources in dir. Others are files and directories that are none.
func scan(dir string, others map[string]bool) (map[string]stamp, error) {
	files := map[string]stamp{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != dir:
			return nil // removed meanwhile
		case err != nil:
			return err
		case path == dir:
			return nil
		case others[path] && entry.IsDir():
			return filepath.SkipDir
		case others[path]:
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

// Package dirtest lets tests compare the contents of directories: List returns one as text.
package dirtest

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// List returns a line with path, size and modification time for each file and directory below dir.
func List(t testing.TB, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&list, path, info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

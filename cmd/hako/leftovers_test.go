package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// TestLeftovers: what killed processes have left of interrupted writes is not offered, and is gone after a start. What
// is young, and may be another process's, stays.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := approved(t, "secrets: {key: {file: keys/key}}\n")
	var old, young []string
	for _, place := range []string{".", "plugins", "hako.store", "hako.store/audit", "keys"} {
		for _, name := range []string{".hako-new-1", ".hako-new-2"} {
			put(t, filepath.Join(dir, place, name), []byte("half a fi"))
		}
		old = append(old, filepath.Join(dir, place, ".hako-new-1"))
		young = append(young, filepath.Join(dir, place, ".hako-new-2"))
	}
	before := time.Now().Add(-time.Hour)
	for _, path := range old {
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
	}
	if listed := invoke(t, dir, "plugin", "list").stdout; strings.Contains(listed, "hako-new") {
		t.Errorf("a temporary file is listed:\n%s", listed)
	}
	serve(t, dir)
	isThere := func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	if !testwait.Until(t, func() bool { return !slices.ContainsFunc(old, isThere) }) {
		t.Errorf("still there: %s", slices.DeleteFunc(old, func(path string) bool { return !isThere(path) }))
	}
	for _, path := range young {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestInterruptedRestore: hako does not begin with databases that are a part of a backup.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	for _, name := range []string{"moving", "plugins/notes/@default.db"} {
		put(t, filepath.Join(dir, "hako.store", ".restore-1", name), []byte("x"))
	}
	invoke(t, dir, "call", "probe_echo", `{"text":"a"}`).want(t, exitUsage, "the restore was interrupted",
		"move the directory away")
}

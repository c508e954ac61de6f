package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/sandbox"
)

// TestTemporaryCacheThatFails: an engine that cannot use its temporary directory removes it.
func TestTemporaryCacheThatFails(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems limit paths elsewhere")
	}
	const longest = 4095 // of a path
	dir := t.TempDir()
	for longest-len(dir) > 256 {
		dir = filepath.Join(dir, strings.Repeat("x", 200))
	}
	// The temporary directory still has room for its name, and the cache in it has not.
	if room := longest - len(dir) - len("/hako-code-0123456789") - 2; room > 0 {
		dir = filepath.Join(dir, strings.Repeat("y", room-1))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	if e, err := sandbox.New(nil); err == nil {
		_ = e.Close()
		t.Fatal("the directory of the cache was made")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

package file_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/text/unicode/norm"
)

// TestReplacingKeepsMode: a file that the guest has made in this call takes over the mode of the one that it replaces.
func TestReplacingKeepsMode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	g := open(t)
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o660, 0o664, 0o666, 0o755, 0o400} {
		path := filepath.Join(g.dir, "old")
		must(t, os.WriteFile(path, []byte("old"), 0o600))
		must(t, os.Chmod(path, mode))
		want(t, "write", write(g, "new", "new"), 0)
		want(t, "rename", g.Rename("new", "old"), 0)
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode().Perm() != mode&^0o111 {
			t.Errorf("of %v it became %v", mode, info.Mode())
		}
		must(t, os.Remove(path))
	}
}

// TestNamesInNFD: a name that is decomposed on the disk is found by the composed one, and the other way round.
func TestNamesInNFD(t *testing.T) {
	t.Parallel()
	nfc, dir := "データ報告ガイド.txt", "がいど/é"
	nfd := norm.NFD.String(nfc)
	g := open(t)
	host(t, g.dir, map[string]string{nfd: "first", norm.NFD.String(dir) + "/x": "deep", "é": "composed"})
	for path, content := range map[string]string{nfc: "first", nfd: "first", dir + "/x": "deep", "e\u0301": "composed"} {
		if got, errno := read(g, path); errno != 0 || got != content {
			t.Errorf("%+q holds %q, %v", path, got, errno)
		}
	}
	want(t, "write", write(g, nfc, "second"), 0)
	_, errno := g.OpenFile(nfc, sys.O_WRONLY|sys.O_CREAT|sys.O_EXCL, 0)
	want(t, "exclusive", errno, sys.EEXIST)
	want(t, "write new", write(g, "new", "third"), 0)
	want(t, "rename", g.Rename("new", nfc), 0)
	names, errno := list(g, ".")
	if got, _ := read(g, nfd); errno != 0 || got != "third" || len(names) != 3 || !slices.Contains(names, nfd) {
		t.Errorf("%q of %+q", got, names)
	}
	want(t, "unlink", g.Unlink(nfc), 0)
	_, errno = read(g, nfd)
	want(t, "read", errno, sys.ENOENT)
	_, errno = read(g, "ガ\xff")
	want(t, "no UTF-8", errno, sys.ENOENT)
}

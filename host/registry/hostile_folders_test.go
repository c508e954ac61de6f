//go:build unix

package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/registry"
)

// TestHostileFolders: a folder that passes for a bundle has no pipe that hako waits for, and no device that it reads.
func TestHostileFolders(t *testing.T) {
	t.Parallel()
	const index = `{"manifests":[{"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`
	blob := "blobs/sha256/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for name, file := range map[string]string{"the index": "index.json", "a blob": blob} {
		for kind, make := range map[string]func(path string) error{
			"a pipe":           func(path string) error { return unix.Mkfifo(path, 0o600) },
			"a device":         func(path string) error { return os.Symlink("/dev/zero", path) },
			"a link to nobody": func(path string) error { return os.Symlink(filepath.Base(path), path) },
			"a folder":         func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			t.Run(name+" is "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				put(t, filepath.Join(dir, "index.json"), []byte(index))
				put(t, filepath.Join(dir, blob), nil)
				path := filepath.Join(dir, filepath.FromSlash(file))
				if err := errors.Join(os.Remove(path), make(path)); err != nil {
					t.Fatal(err)
				}
				l, err := registry.OpenLayout(dir, 1<<20)
				if err == nil {
					_, err = l.Blob(t.Context(), registrytest.Digest(nil))
				}
				if err == nil {
					t.Error("it was read")
				}
			})
		}
	}
	t.Run("the tar is a pipe", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x.tar")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.OpenLayout(path, 1<<20); err == nil {
			t.Error("it was opened")
		}
	})
}

//go:build unix

package file_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

func TestSpecialFilesAreNotOpened(t *testing.T) {
	t.Parallel()
	g := open(t)
	must(t, unix.Mkfifo(filepath.Join(g.dir, "pipe"), 0o644))
	socket, err := net.Listen("unix", filepath.Join(g.dir, "socket"))
	must(t, err)
	defer socket.Close()
	for _, path := range []string{"pipe", "socket"} {
		for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_WRONLY, sys.O_RDWR | sys.O_CREAT,
			sys.O_RDWR | sys.O_TRUNC} {
			_, errno := g.OpenFile(path, flag, 0)
			want(t, path, errno, sys.EACCES)
		}
		_, errno := g.OpenFile(path, sys.O_RDONLY|sys.O_DIRECTORY, 0)
		want(t, path, errno, sys.ENOTDIR)
		want(t, "utimens", g.Utimens(path, 0, 0), sys.EACCES)
		if _, errno := g.Stat(path); errno != 0 {
			t.Errorf("stat of a %s: %v", path, errno)
		}
	}
	if names, _ := list(g, "."); !slices.Equal(names, []string{"pipe", "socket"}) {
		t.Errorf("listed %v", names)
	}
	want(t, "unlink", g.Unlink("pipe"), 0)
}

func TestDevicesAreNotOpened(t *testing.T) {
	t.Parallel()
	g := open(t, at("/dev"))
	for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_WRONLY, sys.O_RDWR} {
		_, errno := g.OpenFile("null", flag, 0)
		want(t, "open", errno, sys.EACCES)
	}
}

// TestSwappedFile opens a name that alternates between a pipe and a file. The guest gets the file or an error without
// delay.
func TestSwappedFile(t *testing.T) {
	t.Parallel()
	g := open(t)
	pipe, real, name := filepath.Join(g.dir, "pipe"), filepath.Join(g.dir, "real"), filepath.Join(g.dir, "name")
	must(t, unix.Mkfifo(pipe, 0o644))
	must(t, os.WriteFile(real, []byte("file"), 0o644))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			_ = os.Rename(real, name)
			_ = os.Rename(name, real)
			_ = os.Rename(pipe, name)
			_ = os.Rename(name, pipe)
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_WRONLY} {
			f, errno := g.OpenFile("name", flag, 0)
			if errno != 0 {
				continue
			}
			if st, errno := f.Stat(); errno != 0 || !st.Mode.IsRegular() {
				t.Fatalf("opened %v, %v", st.Mode, errno)
			}
			f.Close()
		}
	}
}

func TestModesAreNeverExecutable(t *testing.T) {
	t.Parallel()
	g := open(t)
	must(t, os.WriteFile(filepath.Join(g.dir, "tool"), []byte("#!"), 0o755))
	want(t, "create", write(g, "f", "x"), 0)
	want(t, "chmod", g.Chmod("f", 0o755), sys.EPERM)
	info, err := os.Stat(filepath.Join(g.dir, "f"))
	must(t, err)
	if info.Mode()&0o133 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
	want(t, "write to an executable file", write(g, "tool", "evil"), sys.EACCES)
	want(t, "another in its place", g.Rename("f", "tool"), 0)
	if info, err = os.Stat(filepath.Join(g.dir, "tool")); err != nil || info.Mode()&0o111 != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestReplacingKeepsFilesPrivate(t *testing.T) {
	t.Parallel()
	g := open(t)
	for name, mode := range map[string]os.FileMode{"private": 0o600, "tool": 0o755, "shared": 0o666} {
		path := filepath.Join(g.dir, name)
		must(t, os.WriteFile(path, []byte("old"), mode))
		must(t, os.Chmod(path, mode))
	}
	for name, mode := range map[string]os.FileMode{"private": 0o600, "tool": 0o644, "shared": 0o644} {
		must(t, os.WriteFile(filepath.Join(g.dir, "new"), []byte("new"), 0o644)) // by another than the guest
		must(t, os.Chmod(filepath.Join(g.dir, "new"), 0o644))
		want(t, "rename", g.Rename("new", name), 0)
		info, err := os.Stat(filepath.Join(g.dir, name))
		must(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
}

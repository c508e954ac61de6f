package file_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
)

// guest is the file system of one guest instance.
type guest struct {
	sys.FS
	*file.Handles
	preopen sys.File
	dir     string // of the mount, on the host
}

// open mounts a new directory with the given options.
func open(t *testing.T, options ...func(*grant.Mount)) *guest {
	t.Helper()
	m := grant.Mount{Name: "workspace", Path: t.TempDir(), Write: true}
	for _, o := range options {
		o(&m)
	}
	return enter(t, mount(t, m), m.Path, 0)
}

// enter returns a guest of a mount. Like wazero it opens the preopen first.
func enter(t *testing.T, m *file.Mount, dir string, limit int) *guest {
	t.Helper()
	g := &guest{Handles: file.NewHandles(limit), dir: dir}
	t.Cleanup(func() { g.End() })
	g.FS = m.FS(g.Handles)
	var errno sys.Errno
	g.preopen, errno = g.OpenFile(".", sys.O_RDONLY, 0)
	want(t, "preopen", errno, 0)
	return g
}

func mount(t *testing.T, m grant.Mount) *file.Mount {
	t.Helper()
	mounted, err := file.New(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mounted.Close(); err != nil {
			t.Error(err)
		}
	})
	return mounted
}

func readOnly(m *grant.Mount)             { m.Write = false }
func at(dir string) func(*grant.Mount)    { return func(m *grant.Mount) { m.Path = dir } }
func deny(g ...string) func(*grant.Mount) { return func(m *grant.Mount) { m.Deny = g } }
func quota(n int64) func(*grant.Mount)    { return func(m *grant.Mount) { m.Quota = n } }

// host creates files and directories ("name/") below dir on the host.
func host(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what string, got, want sys.Errno) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// read returns the content of a file as a guest reads it.
func read(g sys.FS, path string) (string, sys.Errno) {
	f, errno := g.OpenFile(path, sys.O_RDONLY, 0)
	if errno != 0 {
		return "", errno
	}
	defer f.Close()
	var all []byte
	buf := make([]byte, 512)
	for {
		n, errno := f.Read(buf)
		all = append(all, buf[:n]...)
		if errno != 0 || n == 0 {
			return string(all), errno
		}
	}
}

// write creates or replaces a file.
func write(g sys.FS, path, content string) sys.Errno {
	f, errno := g.OpenFile(path, sys.O_WRONLY|sys.O_CREAT|sys.O_TRUNC, 0o777)
	if errno != 0 {
		return errno
	}
	_, errno = f.Write([]byte(content))
	if closed := f.Close(); errno == 0 {
		errno = closed
	}
	return errno
}

// list returns the sorted names in a directory, read in small batches.
func list(g sys.FS, path string) ([]string, sys.Errno) {
	f, errno := g.OpenFile(path, sys.O_RDONLY|sys.O_DIRECTORY, 0)
	if errno != 0 {
		return nil, errno
	}
	defer f.Close()
	var names []string
	for {
		entries, errno := f.Readdir(2)
		for _, e := range entries {
			names = append(names, e.Name)
		}
		if errno != 0 || len(entries) < 2 {
			slices.Sort(names)
			return names, errno
		}
	}
}

func TestFilesAndDirectories(t *testing.T) {
	t.Parallel()
	g := open(t)
	want(t, "mkdir", g.Mkdir("a", 0o700), 0)
	want(t, "mkdir with a slash", g.Mkdir("a/b/", 0o700), 0)
	want(t, "mkdir again", g.Mkdir("a/b", 0o700), sys.EEXIST)
	want(t, "mkdir without parent", g.Mkdir("x/y", 0o700), sys.ENOENT)
	want(t, "write", write(g, "a/b/f.txt", "hello"), 0)
	if got, errno := read(g, "a/b/f.txt"); got != "hello" || errno != 0 {
		t.Errorf("read %q, %v", got, errno)
	}
	st, errno := g.Stat("a/b/f.txt")
	if errno != 0 || st.Size != 5 || !st.Mode.IsRegular() || st.Nlink != 1 {
		t.Errorf("stat %+v, %v", st, errno)
	}
	_, errno = g.Stat("a/b/f.txt/")
	want(t, "stat of a file with a slash", errno, sys.ENOTDIR)
	want(t, "rename", g.Rename("a/b/f.txt", "a/g.txt"), 0)
	want(t, "rename of nothing", g.Rename("a/b/f.txt", "a/h.txt"), sys.ENOENT)
	want(t, "rename of a directory", g.Rename("a/b", "c"), 0)
	if names, _ := list(g, "."); !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("root holds %v", names)
	}
	for range 2 { // the preopened directory can be listed again after a rewind
		if _, errno := g.preopen.Seek(0, io.SeekStart); errno != 0 {
			t.Error(errno)
		}
		if entries, errno := g.preopen.Readdir(-1); len(entries) != 2 || errno != 0 {
			t.Errorf("preopen holds %v, %v", entries, errno)
		}
		if entries, errno := g.preopen.Readdir(5); len(entries) != 0 || errno != 0 {
			t.Errorf("after its end the preopen holds %v, %v", entries, errno)
		}
	}
	want(t, "rmdir of a file", g.Rmdir("a/g.txt"), sys.ENOTDIR)
	want(t, "rmdir of a full directory", g.Rmdir("a"), sys.ENOTEMPTY)
	want(t, "rmdir of the mount", g.Rmdir("."), sys.EINVAL)
	want(t, "unlink of a directory", g.Unlink("c"), sys.EISDIR)
	want(t, "unlink", g.Unlink("a/g.txt"), 0)
	want(t, "unlink again", g.Unlink("a/g.txt"), sys.ENOENT)
	want(t, "rmdir", g.Rmdir("a"), 0)
	want(t, "a file as a directory", write(g, "f", ""), 0)
	want(t, "below a file", g.Mkdir("f/x", 0), sys.ENOTDIR)
}

func TestOpenFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path string
		flag sys.Oflag
		want sys.Errno
	}{
		"missing":                    {"none", sys.O_RDONLY, sys.ENOENT},
		"exclusive, exists":          {"f", sys.O_RDWR | sys.O_CREAT | sys.O_EXCL, sys.EEXIST},
		"exclusive, new":             {"new", sys.O_RDWR | sys.O_CREAT | sys.O_EXCL, 0},
		"a file as a directory":      {"f", sys.O_RDONLY | sys.O_DIRECTORY, sys.ENOTDIR},
		"a file with a slash":        {"f/", sys.O_RDONLY, sys.ENOTDIR},
		"a directory to write":       {"d", sys.O_RDWR, sys.EISDIR},
		"a directory to truncate":    {"d", sys.O_RDONLY | sys.O_TRUNC, sys.EISDIR},
		"a link, not to be followed": {"l", sys.O_RDONLY | sys.O_NOFOLLOW, sys.ELOOP},
		"a link":                     {"l", sys.O_RDONLY, 0},
		"a NUL":                      {"f\x00", sys.O_RDONLY, sys.EINVAL},
		"a long path":                {strings.Repeat("x/", 3000), sys.O_RDONLY, sys.ENAMETOOLONG},
		"a long name":                {strings.Repeat("x", 300), sys.O_RDONLY | sys.O_CREAT, sys.ENAMETOOLONG},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t)
			host(t, g.dir, map[string]string{"f": "content", "d/": ""})
			must(t, os.Symlink("f", filepath.Join(g.dir, "l")))
			f, errno := g.OpenFile(c.path, c.flag, 0)
			want(t, "open", errno, c.want)
			if errno == 0 {
				want(t, "close", f.Close(), 0)
				want(t, "close again", f.Close(), 0)
			}
		})
	}
}

func TestReadAndWritePositions(t *testing.T) {
	t.Parallel()
	g := open(t)
	host(t, g.dir, map[string]string{"f": "0123456789"})
	f, errno := g.OpenFile("f", sys.O_RDWR, 0)
	want(t, "open", errno, 0)
	defer f.Close()
	buf := make([]byte, 3)
	_, errno = f.Read(buf)
	want(t, "read", errno, 0)
	_, errno = f.Write([]byte("ab"))
	want(t, "write", errno, 0)
	_, errno = f.Pwrite([]byte("xy"), 8)
	want(t, "pwrite", errno, 0)
	if pos, _ := f.Seek(0, io.SeekCurrent); pos != 5 {
		t.Errorf("position %d after reading 3 and writing 2", pos)
	}
	if pos, _ := f.Seek(-1, io.SeekEnd); pos != 9 {
		t.Errorf("position %d, one before the end", pos)
	}
	for _, c := range []struct {
		offset int64
		whence int
	}{{-1, io.SeekStart}, {0, 3}, {-100, io.SeekEnd}, {1<<63 - 1, io.SeekCurrent}} {
		_, errno = f.Seek(c.offset, c.whence)
		want(t, "bad seek", errno, sys.EINVAL)
	}
	want(t, "append mode", f.SetAppend(true), 0)
	_, errno = f.Write([]byte("end"))
	want(t, "append", errno, 0)
	want(t, "truncate below zero", f.Truncate(-1), sys.EINVAL)
	_, errno = f.Pread(buf, -1)
	want(t, "pread before the start", errno, sys.EINVAL)
	_, errno = f.Pwrite(buf, -1)
	want(t, "pwrite before the start", errno, sys.EINVAL)
	if got, _ := read(g, "f"); got != "012ab567xyend" {
		t.Errorf("file holds %q", got)
	}
	want(t, "truncate", f.Truncate(2), 0)
	if got, _ := read(g, "f"); got != "01" {
		t.Errorf("truncated file holds %q", got)
	}
}

func TestAccessModes(t *testing.T) {
	t.Parallel()
	g := open(t)
	host(t, g.dir, map[string]string{"f": "content"})
	buf := make([]byte, 1)
	r, _ := g.OpenFile("f", sys.O_RDONLY, 0)
	_, errno := r.Write(buf)
	want(t, "write to a file opened for reading", errno, sys.EBADF)
	want(t, "truncate of a file opened for reading", r.Truncate(0), sys.EBADF)
	w, _ := g.OpenFile("f", sys.O_WRONLY, 0)
	_, errno = w.Read(buf)
	want(t, "read of a file opened for writing", errno, sys.EBADF)
	want(t, "close", r.Close(), 0)
	_, errno = r.Read(buf)
	want(t, "read of a closed file", errno, sys.EBADF)
}

func TestTimes(t *testing.T) {
	t.Parallel()
	g := open(t)
	host(t, g.dir, map[string]string{"f": "content"})
	want(t, "utimens", g.Utimens("f", 5e9, 7e9+3), 0)
	want(t, "utimens, one omitted", g.Utimens("f", sys.UTIME_OMIT, 8e9), 0)
	st, _ := g.Stat("f")
	if st.Atim != 5e9 || st.Mtim != 8e9 {
		t.Errorf("times %d, %d", st.Atim, st.Mtim)
	}
	f, _ := g.OpenFile("f", sys.O_RDWR, 0)
	defer f.Close()
	want(t, "utimens of an open file", f.Utimens(1e9, 2e9), 0)
	want(t, "rename", g.Rename("f", "g"), 0)
	want(t, "utimens of a moved file", f.Utimens(1e9, 2e9), sys.ENOENT)
	want(t, "utimens of nothing", g.Utimens("f", 0, 0), sys.ENOENT)
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{"f": "content", "d/": ""})
	g := open(t, at(dir), readOnly)
	for _, flag := range []sys.Oflag{
		sys.O_WRONLY, sys.O_RDWR, sys.O_CREAT, sys.O_TRUNC, sys.O_APPEND, sys.O_RDWR | sys.O_CREAT | sys.O_TRUNC,
	} {
		_, errno := g.OpenFile("f", flag, 0)
		want(t, "open", errno, sys.EROFS)
	}
	f, errno := g.OpenFile("f", sys.O_RDONLY, 0)
	want(t, "open for reading", errno, 0)
	defer f.Close()
	_, errno = f.Write([]byte("x"))
	want(t, "write", errno, sys.EROFS)
	_, errno = f.Pwrite([]byte("x"), 0)
	want(t, "pwrite", errno, sys.EROFS)
	want(t, "ftruncate", f.Truncate(0), sys.EROFS)
	want(t, "futimens", f.Utimens(0, 0), sys.EROFS)
	want(t, "utimens", g.Utimens("f", 0, 0), sys.EROFS)
	want(t, "chmod", g.Chmod("f", 0), sys.EROFS)
	want(t, "mkdir", g.Mkdir("x", 0), sys.EROFS)
	want(t, "rename", g.Rename("f", "x"), sys.EROFS)
	want(t, "unlink", g.Unlink("f"), sys.EROFS)
	want(t, "rmdir", g.Rmdir("d"), sys.EROFS)
	want(t, "link", g.Link("f", "x"), sys.EROFS)
	want(t, "symlink", g.Symlink("f", "x"), sys.EROFS)
	if got, _ := read(g, "f"); got != "content" {
		t.Errorf("file holds %q", got)
	}
}

func TestOpenFileLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := enter(t, mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true}), dir, 3)
	var last sys.File
	for _, path := range []string{"a", "b"} {
		f, errno := g.OpenFile(path, sys.O_RDWR|sys.O_CREAT, 0)
		want(t, "open", errno, 0)
		last = f
	}
	_, errno := g.OpenFile(".", sys.O_RDONLY, 0)
	want(t, "open the mount", errno, 0)
	_, errno = g.OpenFile("c", sys.O_RDWR|sys.O_CREAT, 0)
	if errno != sys.EIO || g.Errno() != 33 {
		t.Errorf("a fourth: %v with errno %d, want EMFILE (33)", errno, g.Errno())
	}
	want(t, "close", last.Close(), 0)
	_, errno = g.OpenFile("a", sys.O_RDONLY, 0)
	want(t, "open after closing one", errno, 0)
	_, errno = read(g, "none")
	if errno != sys.EIO || g.Errno() != 33 {
		t.Errorf("a fourth again: %v with errno %d, want EMFILE (33)", errno, g.Errno())
	}
	if left := g.End(); left != 3 {
		t.Errorf("%d left open, want 3", left)
	}
	if _, errno := g.preopen.Readdir(-1); errno != 0 {
		t.Errorf("the preopen in the next call: %v", errno)
	}
	if left := g.End(); left != 0 {
		t.Errorf("%d left open by the preopen", left)
	}
}

func TestStatHidesTheHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{"f": "content", "g": "other", "d/": ""})
	g, other := open(t, at(dir)), open(t, at(dir))
	f, _ := g.Stat("f")
	if again, _ := g.Stat("d/../f"); again.Ino != f.Ino {
		t.Error("the same file has two numbers")
	}
	if second, _ := g.Stat("g"); second.Ino == f.Ino {
		t.Error("two files have the same number")
	}
	if elsewhere, _ := other.Stat("f"); elsewhere.Ino == f.Ino {
		t.Error("two mounts give the same number, so it is the host's")
	}
	if f.Dev != 1 {
		t.Errorf("device %d", f.Dev)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{"f": ""})
	for name, c := range map[string]struct {
		mount grant.Mount
		want  string
	}{
		"missing directory": {grant.Mount{Name: "w", Path: filepath.Join(dir, "none")}, "create the directory"},
		"a file":            {grant.Mount{Name: "w", Path: filepath.Join(dir, "f")}, "not a directory"},
		"no name":           {grant.Mount{Path: dir}, "name is missing"},
		"negative quota":    {grant.Mount{Name: "w", Path: dir, Quota: -1}, "negative"},
		"malformed glob":    {grant.Mount{Name: "w", Path: dir, Deny: []string{"a[b"}}, `"a[b"`},
		"empty glob":        {grant.Mount{Name: "w", Path: dir, Deny: []string{"/"}}, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := file.New(c.mount); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

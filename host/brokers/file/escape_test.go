package file_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/grant"
)

// canary is the content of a file outside of the mount that guests must neither read nor change.
const canary = "outside: not for guests"

// outside creates a directory with the mount in "inside" and the canary beside it.
func outside(t testing.TB) (inside, secret string) {
	t.Helper()
	dir := t.TempDir()
	inside, secret = filepath.Join(dir, "inside"), filepath.Join(dir, "secret")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(inside, "d"), 0o755),
		os.MkdirAll(filepath.Join(dir, "elsewhere"), 0o755),
		os.WriteFile(secret, []byte(canary), 0o644),
		os.WriteFile(filepath.Join(dir, "elsewhere", "secret"), []byte(canary), 0o644),
		os.WriteFile(filepath.Join(dir, "elsewhere", "only-outside"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return inside, secret
}

func symlink(t testing.TB, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func TestNoPathLeadsOut(t *testing.T) {
	t.Parallel()
	inside, secret := outside(t)
	for link, target := range map[string]string{
		"relative":  "../secret",
		"absolute":  secret,
		"deep":      "d/../../secret",
		"d/up":      "../../secret",
		"chain1":    "chain2",
		"chain2":    "d/chain3",
		"d/chain3":  "../../secret",
		"parent":    "..",
		"elsewhere": "../elsewhere",
		"root":      "/",
		"loop":      "loop",
	} {
		symlink(t, target, filepath.Join(inside, link))
	}
	g := open(t, at(inside))
	want(t, "a file inside", write(g, "own", "own"), 0)
	for _, path := range []string{
		"../secret", "d/../../secret", "/../secret", secret, "//" + secret, "d/../../inside/../secret",
		"relative", "absolute", "deep", "d/up", "chain1", "loop", "parent/secret", "elsewhere/secret",
		"root" + secret, "relative/",
		"d//../..//secret", "./../secret", "..", "../", "parent/elsewhere/secret",
	} {
		t.Run(path, func(t *testing.T) {
			if got, errno := read(g, path); errno == 0 {
				t.Errorf("read %q", got)
			}
			if _, errno := g.Stat(path); errno == 0 {
				t.Error("stat succeeds")
			}
			if names, errno := list(g, path); errno == 0 {
				t.Errorf("listed %v", names)
			}
			for what, errno := range map[string]sys.Errno{
				"write":   write(g, path, "changed"),
				"utimens": g.Utimens(path, 0, 0),
				"mkdir":   g.Mkdir(path+"/new", 0),
				"move in": g.Rename(path+"/secret", "stolen"),
				"chmod":   g.Chmod(path, 0o777),
			} {
				if errno == 0 {
					t.Errorf("%s succeeds", what)
				}
			}
			if path[0] == '.' || path[0] == '/' { // the others are links, which may be removed
				if g.Unlink(path) == 0 || g.Rmdir(path) == 0 || g.Rename(path, "stolen") == 0 ||
					g.Rename("own", path) == 0 {
					t.Error("the name was taken")
				}
			}
		})
	}
	unchanged(t, inside)
}

// unchanged checks that the files outside of the mount are as before.
func unchanged(t testing.TB, inside string) {
	t.Helper()
	dir := filepath.Dir(inside)
	for _, path := range []string{"secret", "elsewhere/secret"} {
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil || string(content) != canary {
			t.Errorf("%s outside holds %q, %v", path, content, err)
		}
	}
	for path, want := range map[string][]string{".": {"elsewhere", "inside", "secret"},
		"elsewhere": {"only-outside", "secret"}} {
		entries, err := os.ReadDir(filepath.Join(dir, path))
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s outside holds %v, %v", path, names, err)
		}
	}
}

func TestLinksThatStayInside(t *testing.T) {
	t.Parallel()
	g := open(t)
	host(t, g.dir, map[string]string{"d/f": "content", "d/e/": ""})
	symlink(t, "d", filepath.Join(g.dir, "dir"))
	symlink(t, "../d/f", filepath.Join(g.dir, "d", "file"))
	symlink(t, "none", filepath.Join(g.dir, "dangling"))

	for _, path := range []string{"dir/f", "d/file", "dir/file"} {
		if got, errno := read(g, path); got != "content" || errno != 0 {
			t.Errorf("%s holds %q, %v", path, got, errno)
		}
	}
	if names, _ := list(g, "dir"); !slices.Equal(names, []string{"e", "f", "file"}) {
		t.Errorf("dir holds %v", names)
	}
	if target, errno := g.Readlink("d/file"); target != "../d/f" || errno != 0 {
		t.Errorf("the link points to %q, %v", target, errno)
	}
	_, errno := g.Readlink("d/f")
	want(t, "readlink of a file", errno, sys.EINVAL)
	st, _ := g.Lstat("d/file")
	if st.Mode&os.ModeSymlink == 0 {
		t.Errorf("lstat of a link: %v", st.Mode)
	}
	_, errno = g.Stat("dangling")
	want(t, "stat of a dangling link", errno, sys.ENOENT)
	want(t, "write through a link", write(g, "d/file", "x"), sys.EACCES)
	want(t, "write through a dangling link", write(g, "dangling", "x"), sys.EACCES)
	want(t, "create behind a link", write(g, "dir/new", "x"), sys.EACCES)
	want(t, "mkdir behind a link", g.Mkdir("dir/new", 0), sys.EACCES)
	want(t, "unlink behind a link", g.Unlink("dir/f"), sys.EACCES)
	want(t, "rmdir behind a link", g.Rmdir("dir/e"), sys.EACCES)
	want(t, "rename behind a link", g.Rename("dir/f", "f"), sys.EACCES)
	want(t, "rename to behind a link", g.Rename("d/f", "dir/g"), sys.EACCES)
	want(t, "utimens through a link", g.Utimens("d/file", 0, 0), sys.EACCES)
	want(t, "rename of a link", g.Rename("d/file", "file"), sys.EACCES)
	want(t, "mkdir in place of a link", g.Mkdir("dangling", 0), sys.EEXIST)
	want(t, "rmdir of a link", g.Rmdir("dir"), sys.ENOTDIR)
	want(t, "a new symbolic link", g.Symlink("d", "new"), sys.EPERM)
	want(t, "a new hard link", g.Link("d/f", "new"), sys.EPERM)
	want(t, "unlink of a link", g.Unlink("d/file"), 0)
	want(t, "a file in place of a link", g.Rename("d/f", "dir"), 0)
	if info, err := os.Lstat(filepath.Join(g.dir, "dir")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("in place of the link: %v, %v", info, err)
	}
}

func TestReadlinkTellsNothingOutside(t *testing.T) {
	t.Parallel()
	inside, secret := outside(t)
	symlink(t, secret, filepath.Join(inside, "absolute"))
	symlink(t, "../../secret", filepath.Join(inside, "d", "relative"))
	symlink(t, "d/hidden/x", filepath.Join(inside, "hidden"))
	g := open(t, at(inside), deny("d/hidden"))
	for path, errno := range map[string]sys.Errno{"absolute": sys.EPERM,
		"d/relative": sys.EPERM, "hidden": sys.ENOENT} {
		target, got := g.Readlink(path)
		if got != errno || target != "" {
			t.Errorf("%s points to %q, %v", path, target, got)
		}
	}
}

func TestHardLinks(t *testing.T) {
	t.Parallel()
	inside, secret := outside(t)
	must(t, os.Link(secret, filepath.Join(inside, "hard")))
	g := open(t, at(inside))
	if _, errno := read(g, "hard"); errno != 0 {
		t.Errorf("read: %v", errno)
	}
	want(t, "write", write(g, "hard", "changed"), sys.EACCES)
	_, errno := g.OpenFile("hard", sys.O_RDWR, 0)
	want(t, "open for writing", errno, sys.EACCES)
	want(t, "utimens", g.Utimens("hard", 0, 0), sys.EACCES)
	want(t, "another file", write(g, "new", "new"), 0)
	want(t, "in its place", g.Rename("new", "hard"), 0)
	unchanged(t, inside)
}

// TestSwappedDirectory reads and writes below a directory that another goroutine keeps exchanging for a link to the
// outside and for a link to a hidden directory.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	inside, _ := outside(t)
	real, link, veil := filepath.Join(inside, "real"), filepath.Join(inside, "link"), filepath.Join(inside, "veil")
	must(t, os.Rename(filepath.Join(inside, "d"), real))
	must(t, os.WriteFile(filepath.Join(real, "secret"), []byte("inside"), 0o644))
	symlink(t, "../elsewhere", link)
	host(t, inside, map[string]string{"hidden/secret": hidden, "hidden/only-outside": ""})
	symlink(t, "hidden", veil)
	ctx, stop := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	defer swapping.Wait()
	defer stop()
	swapping.Go(func() {
		for d := filepath.Join(inside, "d"); ctx.Err() == nil; {
			_ = os.Rename(real, d)
			_ = os.Rename(d, real)
			_ = os.Rename(link, d)
			_ = os.Rename(d, link)
			_ = os.Rename(veil, d)
			_ = os.Rename(d, veil)
		}
	})
	g := open(t, at(inside), deny("hidden"))
	reads := 0
	for range 1000 {
		if got, errno := read(g, "d/secret"); errno == 0 {
			reads++
			if got != "inside" {
				t.Fatalf("read %q", got)
			}
		}
		if names, errno := list(g, "d"); errno == 0 && slices.Contains(names, "only-outside") {
			t.Fatalf("listed %v", names)
		}
		_ = g.Utimens("d/secret", 0, 0)
		if write(g, "d/made", "made") == 0 {
			_ = g.Unlink("d/made")
		}
		_ = g.Mkdir("d/dir", 0)
		_ = g.Rmdir("d/dir")
		_ = g.Rename("d/secret", "moved")
		_ = g.Rename("moved", "d/secret")
		_ = g.Rename("moved", "real/secret")
	}
	unchanged(t, inside)
	t.Logf("%d of 1000 reads found the directory", reads)
}

func TestDeny(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{
		".git/config": "token", "sub/.git/config": "token", "sub/ok": "ok", "key.pem": "key", "sub/key.pem": "key",
		"private/deep/x": "x", "straße": "x", "cafe\u0301": "x", "plain/a": "a", "draft/deep/own": "forged",
	})
	symlink(t, ".git", filepath.Join(dir, "alias"))
	symlink(t, "private/deep/x", filepath.Join(dir, "shortcut"))
	g := open(t, at(dir), deny("**/.git/**", "*.PEM", "/private/", "STRASSE", "caf\u00e9", "absent/deep/own"))
	for _, path := range []string{
		".git", ".git/config", "sub/.git/config", ".GIT/config", "sub/.Git", ".git/new", ".g\u200cit/config",
		"key.pem", "KEY.PEM", "private",
		"private/deep", "private/deep/x", "plain/../.git/config", "alias/config", "shortcut", "straße",
		"cafe\u0301", "caf\u00e9", "Café",
	} {
		t.Run(path, func(t *testing.T) {
			_, errno := read(g, path)
			want(t, "read", errno, sys.ENOENT)
			_, errno = g.Stat(path)
			want(t, "stat", errno, sys.ENOENT)
			_, errno = list(g, path)
			want(t, "list", errno, sys.ENOENT)
			want(t, "utimens", g.Utimens(path, 0, 0), sys.ENOENT)
			want(t, "chmod", g.Chmod(path, 0), sys.ENOENT)
			if path == "shortcut" {
				return // a link that is itself not hidden
			}
			want(t, "write", write(g, path, "x"), sys.ENOENT)
			if path == "alias/config" {
				return
			}
			want(t, "mkdir", g.Mkdir(path, 0), sys.ENOENT)
			want(t, "unlink", g.Unlink(path), sys.ENOENT)
			want(t, "rmdir", g.Rmdir(path), sys.ENOENT)
			want(t, "rename from", g.Rename(path, "x"), sys.ENOENT)
			want(t, "rename to", g.Rename("plain/a", path), sys.ENOENT)
		})
	}
	if names, _ := list(g, "."); !slices.Equal(names, []string{"alias", "draft", "plain", "shortcut", "sub"}) {
		t.Errorf("root holds %v", names)
	}
	if names, _ := list(g, "sub"); !slices.Equal(names, []string{"key.pem", "ok"}) {
		t.Errorf("sub holds %v", names)
	}
	want(t, "rename of a directory that hides something", g.Rename("sub", "elsewhere"), sys.EACCES)
	want(t, "rename that puts a file under a hidden name", g.Rename("draft", "absent"), sys.EACCES)
	want(t, "rename of one that does not", g.Rename("plain", "elsewhere"), 0)
}

func TestUnlimitedListing(t *testing.T) {
	t.Parallel()
	g := open(t, deny("hidden*"))
	host(t, g.dir, map[string]string{"a": "", "b": "", "hidden1": "", "hidden2": "", "hidden3": ""})
	d, _ := g.OpenFile(".", sys.O_RDONLY, 0)
	defer d.Close()
	entries, errno := d.Readdir(-1)
	if len(entries) != 2 || errno != 0 {
		t.Errorf("listed %v, %v", entries, errno)
	}
}

// TestTwoGuestsOfOneMount hammers one mount from several guests.
func TestTwoGuestsOfOneMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: 1 << 20,
		Deny: []string{"x"}})
	var guests sync.WaitGroup
	for i := range 8 {
		g := enter(t, m, dir, 0)
		guests.Go(func() {
			name := string(rune('a' + i))
			for range 50 {
				_ = g.Mkdir(name, 0)
				want(t, "write", write(g, name+"/f", "content"), 0)
				want(t, "rename", g.Rename(name+"/f", "shared"), 0)
				_, _ = read(g, "shared")
				_, _ = list(g, ".")
			}
		})
	}
	guests.Wait()
}

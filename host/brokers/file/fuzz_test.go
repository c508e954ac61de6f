package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
)

const (
	fuzzQuota = 4 << 10
	hidden    = "hidden: not for guests either"
)

// FuzzOperations runs sequences of file operations, then checks the files outside of the mount, the hidden files and
// the quota.
func FuzzOperations(f *testing.F) {
	f.Add("read ../secret\nread out\nread d/../../secret")
	f.Add("write d/f 100\nrename d/f g\nread g\nunlink g")
	f.Add("rename keep moved\nread moved/hidden/f\nrename keep/hidden x\nmkdir moved\nlist keep")
	f.Add("symlink ../secret l\nread l\nlink out l\nread in/f\nwrite in/f 3\nunlink in\nrename in d/in\nread d/in/f")
	f.Add("write a 5000\nwrite b 4000\ntruncate b 100000\nappend b 2000\nunlink b\nwrite c 4000\nrename c b")
	f.Add("write a 3000\nrename a a\nrename a ./a\nwrite b 3000")
	f.Add("open a\nunlink a\nappend a 3000\nwrite b 3000\nclose\nwrite b 3000")
	f.Add("read KEEP/HIDDEN/F\nread keep//hidden/./f\nread in/../keep/hidden/f\nreadlink out\nreadlink veil\nread veil")
	f.Fuzz(func(t *testing.T, program string) {
		inside, _ := outside(t)
		host(t, inside, map[string]string{"keep/hidden/f": hidden, "d/f": "f"})
		for link, target := range map[string]string{"out": "../secret", "up": "..", "in": "d",
			"veil": "keep/hidden/f"} {
			symlink(t, target, filepath.Join(inside, link))
		}
		m, err := file.New(grant.Mount{Name: "w", Path: inside, Write: true,
			Deny: []string{"keep/hidden"}, Quota: fuzzQuota})
		must(t, err)
		g := enter(t, m, inside, 4)
		for i, line := range strings.Split(program, "\n") {
			if i == 100 {
				break
			}
			run(t, g, strings.Fields(line))
		}
		g.End()
		must(t, m.Close())
		unchanged(t, inside)
		if content, err := os.ReadFile(filepath.Join(inside, "keep/hidden/f")); string(content) != hidden {
			t.Errorf("the hidden file holds %q, %v", content, err)
		}
		if held := held(t, inside); held > fuzzQuota {
			t.Errorf("%d bytes, more than the quota", held)
		}
	})
}

// run performs one operation: words are its name, a path and its other arguments.
func run(t *testing.T, g *guest, words []string) {
	t.Helper()
	words = append(words, "", "", "")
	path, other := words[1], words[2]
	switch words[0] {
	case "read":
		if content, _ := read(g, path); strings.Contains(content, "not for guests") {
			t.Errorf("read %q at %q", content, path)
		}
	case "readlink":
		if target, _ := g.Readlink(path); strings.Contains(target, "secret") || strings.Contains(target, "hidden") {
			t.Errorf("%q points to %q", path, target)
		}
	case "list":
		if names, _ := list(g, path); strings.Contains(strings.Join(names, " "), "secret") {
			t.Errorf("%q holds %v", path, names)
		}
	case "write":
		_ = write(g, path, strings.Repeat("x", number(other)))
	case "open":
		_, _ = g.OpenFile(path, sys.O_RDWR|sys.O_CREAT, 0)
	case "close":
		g.End()
	case "append", "truncate":
		if f, errno := g.OpenFile(path, sys.O_RDWR|sys.O_CREAT|sys.O_APPEND, 0); errno == 0 {
			if words[0] == "truncate" {
				_ = f.Truncate(int64(number(other)))
			} else {
				_, _ = f.Write(make([]byte, number(other)))
			}
			f.Close()
		}
	case "mkdir":
		_ = g.Mkdir(path, 0)
	case "rmdir":
		_ = g.Rmdir(path)
	case "unlink":
		_ = g.Unlink(path)
	case "rename":
		_ = g.Rename(path, other)
	case "utimens":
		_ = g.Utimens(path, 1, 1)
	case "chmod":
		_ = g.Chmod(path, 0o777)
	case "link":
		_ = g.Link(path, other)
	case "symlink":
		_ = g.Symlink(path, other)
	}
}

func number(s string) (n int) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > 1<<20 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// held returns the sum of the file sizes below a directory.
func held(t *testing.T, dir string) (total int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		total += info.Size()
		return err
	}))
	return total
}

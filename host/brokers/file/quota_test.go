package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/grant"
)

const edquot = 19 // as WASI numbers it

// full checks that the last operation exceeded the quota.
func full(t *testing.T, what string, g *guest, errno sys.Errno) {
	t.Helper()
	if errno != sys.EIO || g.Errno() != edquot {
		t.Errorf("%s: %v with errno %d, want EDQUOT (19)", what, errno, g.Errno())
	}
}

func kilobytes(n int) string { return strings.Repeat("x", n<<10) }

// TestLeftovers: temporary files of interrupted writes are removed by the first measurement and do not count. Those of
// running writes stay, and so do files of users with similar names.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{"d/hako-write-1.tmp": kilobytes(4), "hako-write-2.tmp": kilobytes(4),
		"old.tmp": "x", "hako-write-notes.tmp": "x"})
	for _, name := range []string{"d/hako-write-1.tmp", "old.tmp", "hako-write-notes.tmp"} {
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	g := open(t, at(dir), quota(10<<10))
	want(t, "what the old one held", write(g, "a", kilobytes(5)), 0) // which waits for the measurement
	for name, there := range map[string]bool{"d/hako-write-1.tmp": false, "hako-write-2.tmp": true,
		"old.tmp": true, "hako-write-notes.tmp": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host(t, dir, map[string]string{"before/f": kilobytes(4), ".hidden": kilobytes(1)})
	g := open(t, at(dir), quota(10<<10), deny(".hidden"))

	want(t, "5 of 10 KiB more", write(g, "a", kilobytes(5)), 0)
	full(t, "one byte more", g, write(g, "b", "x"))
	want(t, "the same again", write(g, "a", kilobytes(5)), 0)
	f, _ := g.OpenFile("a", sys.O_RDWR, 0)
	defer f.Close()
	full(t, "truncate to more", g, f.Truncate(6<<10))
	_, errno := f.Pwrite([]byte("x"), 1<<40)
	full(t, "a hole", g, errno)
	want(t, "append mode", f.SetAppend(true), 0)
	_, errno = f.Write([]byte("x"))
	full(t, "append", g, errno)
	want(t, "truncate to less", f.Truncate(4<<10), 0)
	_, errno = f.Write([]byte(kilobytes(1)))
	want(t, "append what that freed", errno, 0)
	want(t, "unlink", g.Unlink("before/f"), 0)
	want(t, "as much as that freed", write(g, "b", kilobytes(4)), 0)
	full(t, "more", g, write(g, "c", "x"))
	want(t, "rename to itself", g.Rename("b", "b"), 0)
	full(t, "more", g, write(g, "c", "x"))
	want(t, "rename over a file", g.Rename("c", "b"), 0)
	want(t, "as much as that freed", write(g, "c", kilobytes(4)), 0)
	full(t, "more", g, write(g, "d", "x"))
	if info, err := os.Stat(filepath.Join(dir, "d")); err != nil || info.Size() != 0 {
		t.Errorf("a refused write left %v, %v", info, err)
	}
}

func TestQuotaCountsRemovedFilesUntilClosed(t *testing.T) {
	t.Parallel()
	g := open(t, quota(8<<10))
	f, _ := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
	again, _ := g.OpenFile("f", sys.O_RDWR, 0)
	_, errno := f.Write([]byte(kilobytes(6)))
	want(t, "write", errno, 0)
	want(t, "unlink", g.Unlink("f"), 0)
	full(t, "a new file", g, write(g, "g", kilobytes(3)))
	_, errno = f.Write([]byte(kilobytes(2)))
	want(t, "the removed file", errno, 0)
	want(t, "close", f.Close(), 0)
	full(t, "a new file while it is open a second time", g, write(g, "g", "x"))
	want(t, "close", again.Close(), 0)
	want(t, "a new file afterwards", write(g, "g", kilobytes(8)), 0)
}

func TestQuotaHoldsForConcurrentGuests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const limit = 100 << 10
	var writers sync.WaitGroup
	for i := range 8 { // each with its own mount of the same directory
		m := mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: limit})
		g := enter(t, m, dir, 0)
		writers.Go(func() {
			for n := range 50 {
				shared, errno := g.OpenFile("shared", sys.O_RDWR|sys.O_CREAT|sys.O_APPEND, 0)
				if errno == 0 {
					_, _ = shared.Write([]byte(kilobytes(1)))
					shared.Close()
				}
				_ = write(g, string(rune('a'+i)), kilobytes(n))
				if n%10 == 9 {
					_ = g.Unlink("shared")
				}
			}
		})
	}
	writers.Wait()
	var total int64
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		total += info.Size()
	}
	if total > limit {
		t.Fatalf("%d bytes, more than the quota of %d", total, limit)
	}
	g := enter(t, mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: limit}), dir, 0)
	want(t, "exactly what is left", write(g, "rest", strings.Repeat("x", int(limit-total))), 0)
	full(t, "one more", g, write(g, "more", "x"))
}

func TestMountsOfOneDirectoryShareItsMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	granted := grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: 8 << 10}
	first, second := mount(t, granted), mount(t, granted)
	one, other := enter(t, first, dir, 0), enter(t, second, dir, 0)
	want(t, "write", write(one, "f", kilobytes(5)), 0)
	full(t, "write by the other", other, write(other, "g", kilobytes(4)))
	for range 2 {
		must(t, first.Close())
	}
	want(t, "write by the other, less", write(other, "g", kilobytes(3)), 0)
	want(t, "write by the closed one", write(one, "h", "x"), sys.EBADF)
	third := enter(t, mount(t, granted), dir, 0)
	full(t, "write by a third", third, write(third, "h", "x"))
}

func TestAppendingGuestsDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true})
	var writers sync.WaitGroup
	for range 4 {
		g := enter(t, m, dir, 0)
		writers.Go(func() {
			f, errno := g.OpenFile("log", sys.O_WRONLY|sys.O_CREAT|sys.O_APPEND, 0)
			want(t, "open", errno, 0)
			for range 100 {
				_, errno = f.Write([]byte("0123456789"))
				want(t, "append", errno, 0)
			}
		})
	}
	writers.Wait()
	if info, err := os.Stat(filepath.Join(dir, "log")); err != nil || info.Size() != 4*100*10 {
		t.Errorf("the log: %v, %v", info, err)
	}
}

func TestQuotaNoticesWhatOthersDo(t *testing.T) {
	dir := t.TempDir()
	host(t, dir, map[string]string{"theirs": kilobytes(8)})
	synctest.Test(t, func(t *testing.T) {
		m := mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: 8 << 10})
		g := enter(t, m, dir, 0)
		full(t, "over the quota", g, write(g, "ours", "x"))
		must(t, os.Remove(filepath.Join(dir, "theirs")))
		full(t, "before the next measurement", g, write(g, "ours", "x"))
		time.Sleep(2 * time.Hour)
		_ = write(g, "ours", "x") // starts it
		synctest.Wait()
		want(t, "after it", write(g, "ours", kilobytes(8)), 0)
	})
}

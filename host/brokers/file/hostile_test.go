package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
)

// nest creates n nested directories, with a file in the innermost.
func nest(t *testing.T, dir string, n, content int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	must(t, err)
	for range n {
		must(t, at.Mkdir("d", 0o755))
		next, err := at.OpenRoot("d")
		must(t, err)
		must(t, at.Close())
		at = next
	}
	must(t, at.WriteFile("f", make([]byte, content), 0o644))
	must(t, at.Close())
}

// TestHostileDisk: guests that try to fill the disk, or to make the host spend a long time on it.
func TestHostileDisk(t *testing.T) {
	t.Parallel()
	t.Run("4,000 nested directories", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			t.Skip("paths end earlier there")
		}
		dir := t.TempDir()
		nest(t, dir, 4000, 6<<10)
		g := open(t, at(dir), quota(20<<20))
		start := time.Now()
		want(t, "write", write(g, "a", "x"), 0)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("the first write took %v", took)
		}
		f, errno := g.OpenFile("a", sys.O_RDWR, 0)
		want(t, "open", errno, 0)
		full(t, "what the innermost file leaves no room for", g, f.Truncate(20<<20-6<<10+1))
		want(t, "what it leaves room for", f.Truncate(20<<20-6<<10), 0)
	})
	t.Run("more names than the quota has room for", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(8<<10))
		for i := range 998 {
			want(t, "mkdir", g.Mkdir(fmt.Sprint("d", i), 0), 0)
		}
		want(t, "a file", write(g, "a", ""), 0)
		want(t, "another", write(g, "b", ""), 0)
		full(t, "one file more", g, write(g, "c", ""))
		full(t, "one directory more", g, g.Mkdir("e", 0))
		want(t, "a file that exists", write(g, "a", "again"), 0)
		want(t, "rename over a file", g.Rename("a", "b"), 0)
		want(t, "as many as that freed", write(g, "c", ""), 0)
		full(t, "more", g, write(g, "e", ""))
		want(t, "rmdir", g.Rmdir("d0"), 0)
		want(t, "as many as that freed", write(g, "e", ""), 0)
		full(t, "more", g, write(g, "f", ""))
	})
	t.Run("names made by many at once", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		m := mount(t, grant.Mount{Name: "workspace", Path: dir, Write: true, Quota: 8 << 10})
		done := make(chan struct{})
		for i := range 4 {
			g := enter(t, m, dir, 0)
			go func() {
				defer func() { done <- struct{}{} }()
				for n := range 400 {
					_ = g.Mkdir(fmt.Sprint(i, "-", n), 0)
				}
			}()
		}
		for range 4 {
			<-done
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1000 {
			t.Errorf("%d names, want 1000: %v", len(entries), err)
		}
	})
	t.Run("a sparse file", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(1<<20))
		f, errno := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
		want(t, "create", errno, 0)
		full(t, "a terabyte of nothing", g, f.Truncate(1<<40))
		_, errno = f.Pwrite([]byte("x"), 1<<62)
		full(t, "a byte far away", g, errno)
	})
	t.Run("a file that grows by bytes far apart", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(1<<20))
		f, errno := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
		want(t, "create", errno, 0)
		for i := range int64(16) {
			_, errno := f.Pwrite([]byte("x"), i<<16)
			want(t, "a byte", errno, 0)
		}
		_, errno = f.Pwrite([]byte("x"), 16<<16)
		full(t, "a byte behind the quota", g, errno)
	})
	t.Run("a file through many handles", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(1<<20))
		for i := range int64(20) {
			f, errno := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
			want(t, "open", errno, 0)
			if errno = f.Truncate((i + 1) << 16); i < 16 {
				want(t, "within the quota", errno, 0)
			} else {
				full(t, "through another handle", g, errno)
			}
		}
	})
	t.Run("a file that is removed while it is open", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(1<<20))
		for i := range 8 {
			f, errno := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
			want(t, "create", errno, 0)
			errno = f.Truncate(200 << 10)
			if i >= 5 && errno == 0 {
				t.Errorf("%d removed files of 200 KiB are open within 1 MiB", i+1)
			}
			want(t, "remove", g.Unlink("f"), 0)
		}
	})
	t.Run("a write of 50 MB is cut", func(t *testing.T) {
		t.Parallel()
		g := open(t, quota(2<<20))
		f, _ := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
		n, errno := f.Write(make([]byte, 50e6))
		want(t, "write", errno, 0)
		if n != file.MaxTransfer {
			t.Errorf("%d bytes written at once", n)
		}
	})
	t.Run("a call that is over works no more", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		deep := strings.Repeat("d/", 300)
		must(t, os.MkdirAll(filepath.Join(dir, deep), 0o755))
		g := open(t, at(dir), deny("**/secret"), quota(1<<20))
		f, _ := g.OpenFile("f", sys.O_RDWR|sys.O_CREAT, 0)
		d, _ := g.OpenFile(".", sys.O_RDONLY, 0)
		over := errors.New("over")
		for name, begin := range map[string]func(){
			"its steps": func() { g.Begin(t.Context(), func(int64) error { return over }) },
			"its time": func() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				g.Begin(ctx, nil)
			},
		} {
			begin()
			_, read := f.Pread(make([]byte, 10), 0)
			_, written := f.Pwrite(make([]byte, 10), 0)
			_, stat := g.Stat(deep)
			_, list := d.Readdir(-1)
			for what, errno := range map[string]sys.Errno{
				"read": read, "write": written, "stat": stat, "list": list, "rename": g.Rename("d", "e"),
				"mkdir": g.Mkdir("m", 0), "unlink": g.Unlink("f"),
				"truncate": f.Truncate(1), "sync": f.Sync(),
			} {
				if errno == 0 {
					t.Errorf("%s: %s goes on", name, what)
				}
			}
		}
		g.Begin(t.Context(), nil)
		want(t, "rename in the next call", g.Rename("d", "e"), 0)
	})
	t.Run("the rename of a tree is paid for by the name", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		nest(t, dir, 1000, 0)
		g := open(t, at(dir), deny("**/secret"))
		spent := int64(0)
		g.Begin(t.Context(), func(steps int64) error {
			if spent += steps; spent > 1_000_000 {
				return errors.New("over")
			}
			return nil
		})
		if errno := g.Rename("d", "e"); errno == 0 {
			t.Error("1,000 names cost next to nothing")
		}
	})
}

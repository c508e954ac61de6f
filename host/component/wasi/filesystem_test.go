package wasi_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/wasm/component"
)

// Flags, and error codes by number.
const (
	read, write, mutate                 = 1, 2, 32
	create, directory, exclusive, trunc = 1, 2, 4, 8
	follow                              = 1

	codeDescriptor, codeQuota, codeExist, codeInvalid = 3, 6, 7, 12
	codeIsDirectory, codeLoop, codeName, codeNoEntry  = 14, 15, 18, 20
	codeMemory, codeNotDirectory, codeNotEmpty        = 22, 24, 25
	codeUnsupported, codeNotPermitted, codeReadOnly   = 27, 31, 33
	codeCrossDevice                                   = 36
)

// fileGuest returns a guest with the mount "data" of a new directory, which it also returns, and the read-only mount
// "docs".
func fileGuest(t *testing.T) (*guest, string) {
	t.Helper()
	var mounts []*file.Mount
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, g := range []grant.Mount{
		{Name: "data", Path: dirs[0], Write: true, Quota: 1 << 20, Deny: []string{"**/secret*"}},
		{Name: "docs", Path: dirs[1]},
	} {
		m, err := file.New(g)
		if err != nil {
			t.Fatal(i, err)
		}
		t.Cleanup(func() { _ = m.Close() })
		mounts = append(mounts, m)
	}
	for path, text := range map[string]string{filepath.Join(dirs[0], "a.txt"): "hello",
		filepath.Join(dirs[0], "secret.txt"): "x", filepath.Join(dirs[0], "sub", "b.txt"): "b",
		filepath.Join(dirs[1], "c.txt"): "c"} {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return newGuest(t, wasi.Options{Mounts: mounts, OpenFiles: 4}), dirs[0]
}

// file calls a function of a descriptor.
func (g *guest) file(function string, args ...any) component.Case {
	g.t.Helper()
	return g.do("wasi:filesystem/types#[method]descriptor."+function, args...).(component.Case)
}

// preopen returns a preopened directory.
func (g *guest) preopen(number int) any {
	g.t.Helper()
	return g.do("wasi:filesystem/preopens#get-directories").([]any)[number].([]any)[0]
}

func (g *guest) open(dir any, path string, how, flags uint32) any {
	g.t.Helper()
	result := g.file("open-at", dir, uint32(follow), path, how, flags)
	if result.Number != 0 {
		g.t.Fatalf("open %s: %+v", path, result)
	}
	return result.Value
}

// wantCode compares a result with a failure, given by its number.
func (g *guest) wantCode(got component.Case, code int) {
	g.t.Helper()
	g.want(got, component.Failed(component.Case{Number: uint32(code)}))
}

func (g *guest) entries(dir any) (names []string) {
	g.t.Helper()
	list := g.file("read-directory", dir).Value
	defer drop(list)
	for {
		entry := g.ok("wasi:filesystem/types#[method]directory-entry-stream.read-directory-entry", list).(component.Case)
		if entry == component.None {
			slices.Sort(names)
			return names
		}
		names = append(names, entry.Value.([]any)[1].(string))
	}
}

func TestPreopens(t *testing.T) {
	t.Parallel()
	g, _ := fileGuest(t)
	var paths []string
	for i, entry := range g.do("wasi:filesystem/preopens#get-directories").([]any) {
		paths = append(paths, entry.([]any)[1].(string))
		if _, ok := g.preopen(i).(component.Lasting); !ok {
			t.Errorf("%s does not last", paths[i])
		}
	}
	g.want(paths, []string{"/data", "/docs", "/"})
	g.want(g.file("get-flags", g.preopen(0)), component.OK(uint32(read|mutate)))
	g.want(g.file("get-flags", g.preopen(1)), component.OK(uint32(read)))
	g.want(g.file("get-type", g.preopen(0)), component.OK(component.Case{Number: 3}))
	g.want(g.entries(g.preopen(0)), []string{"a.txt", "sub"})
	g.want(g.entries(g.preopen(2)), []string{"data", "docs"})
	// A program that lists "/" asks for the type of each entry.
	g.want(g.file("stat-at", g.preopen(2), uint32(0), "data").Value.([]any)[0], component.Case{Number: 3})
	g.wantCode(g.file("stat-at", g.preopen(2), uint32(0), "etc"), codeNoEntry)
	g.wantCode(g.file("open-at", g.preopen(2), uint32(0), "etc", uint32(0), uint32(read)), codeNoEntry)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	g, dir := fileGuest(t)
	root := g.preopen(0)

	f := g.open(root, "a.txt", 0, read)
	g.want(g.file("read", f, uint64(3), uint64(1)), component.OK([]any{[]byte("ell"), false}))
	g.want(g.file("read", f, uint64(math.MaxUint64), uint64(1)), component.OK([]any{[]byte("ello"), true}))
	g.want(g.file("read", f, uint64(9), uint64(9)), component.OK([]any{[]byte{}, true}))
	g.wantCode(g.file("read", f, uint64(9), uint64(math.MaxUint64)), codeInvalid)
	g.wantCode(g.file("write", f, []byte("x"), uint64(0)), codeDescriptor)
	g.wantCode(g.file("write-via-stream", f, uint64(0)), codeDescriptor)
	g.want(g.file("get-flags", f), component.OK(uint32(read)))
	g.want(g.file("get-type", f), component.OK(component.Case{Number: 6}))

	f = g.open(root, "sub/new", create|exclusive, read|write)
	g.want(g.file("write", f, []byte("12345"), uint64(2)), component.OK(uint64(5)))
	g.want(g.file("set-size", f, uint64(4)), component.OK(nil))
	g.want(g.file("sync", f), component.OK(nil))
	g.want(g.file("sync-data", f), component.OK(nil))
	g.want(g.file("advise", f, uint64(0), uint64(0), component.Case{}), component.OK(nil))
	g.want(g.file("read", f, uint64(9), uint64(0)), component.OK([]any{[]byte("\x00\x0012"), true}))
	at := component.Case{Number: 2, Value: []any{uint64(1000), uint64(7)}}
	g.want(g.file("set-times", f, component.Case{}, at), component.OK(nil))
	stat := g.file("stat", f).Value.([]any)
	g.want(stat[:3], []any{component.Case{Number: 6}, uint64(1), uint64(4)})
	g.want(stat[4], component.Some([]any{uint64(1000), uint64(7)}))
	g.want(g.file("set-times-at", root, uint32(0), "sub/new", component.Case{Number: 1}, component.Case{}),
		component.OK(nil))
	late := component.Case{Number: 2, Value: []any{uint64(math.MaxUint64), uint64(0)}}
	g.wantCode(g.file("set-times", f, late, late), codeInvalid)
	drop(f)

	g.want(g.file("create-directory-at", root, "made"), component.OK(nil))
	sub := g.open(root, "sub", directory, read)
	g.want(g.file("get-flags", sub), component.OK(uint32(read|mutate)))
	g.want(g.file("rename-at", sub, "new", root, "made/old"), component.OK(nil))
	g.wantCode(g.file("remove-directory-at", root, "made"), codeNotEmpty)
	g.wantCode(g.file("unlink-file-at", root, "made"), codeIsDirectory)
	g.want(g.file("unlink-file-at", root, "made/old"), component.OK(nil))
	g.want(g.file("remove-directory-at", root, "made"), component.OK(nil))
	g.want(g.entries(sub), []string{"b.txt"})

	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	g.want(g.file("readlink-at", root, "link"), component.OK("a.txt"))
	g.want(g.file("stat-at", root, uint32(0), "link").Value.([]any)[0], component.Case{Number: 5})
	g.want(g.file("stat-at", root, uint32(follow), "link").Value.([]any)[2], uint64(5))
	g.wantCode(g.file("open-at", root, uint32(0), "link", uint32(0), uint32(read)), codeLoop)
}

func TestFileStreams(t *testing.T) {
	t.Parallel()
	g, dir := fileGuest(t)
	root := g.preopen(0)
	const input, output = "wasi:io/streams#[method]input-stream.", "wasi:io/streams#[method]output-stream."
	f := g.open(root, "a.txt", 0, read|write)
	in, out := g.file("read-via-stream", f, uint64(1)).Value, g.file("append-via-stream", f).Value
	drop(f) // its streams remain
	g.want(g.ok(input+"read", in, uint64(2)), []byte("el"))
	g.want(g.ok(input+"skip", in, uint64(1)), uint64(1))
	g.want(g.ok(output+"blocking-splice", out, in, uint64(math.MaxUint64)), uint64(1))
	g.want(g.ok(input+"read", in, uint64(0)), []byte{})
	g.ok(output+"blocking-write-and-flush", out, []byte("!"))
	g.want(g.ok(input+"blocking-read", in, uint64(9)), []byte("o!"))
	g.want(g.failed(input+"read", in, uint64(9)), closed)
	g.want(g.failed(input+"read", in, uint64(0)), closed)
	at := g.file("write-via-stream", g.open(root, "a.txt", 0, write), uint64(1)).Value
	g.ok(output+"write", at, []byte("E"))
	g.ok(output+"write", at, []byte("L"))
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "hELloo!" {
		t.Errorf("%q, %v", text, err)
	}

	var failed component.Case
	for range 2 { // more than the quota
		if failed = g.do(output+"write", at, make([]byte, 1<<20)).(component.Case); failed.Number == 1 {
			break
		}
	}
	cause := failed.Value.(component.Case).Value
	g.want(g.do("wasi:filesystem/types#filesystem-error-code", cause), component.Some(component.Case{Number: codeQuota}))
	if text := g.do("wasi:io/error#[method]error.to-debug-string", cause).(string); !strings.Contains(text, "quota") {
		t.Error(text)
	}
	g.want(g.failed(output+"check-write", at), closed)
	g.want(g.failed(output+"write", at, []byte("x")), closed)
	g.wantCode(g.file("read-via-stream", root, uint64(0)), codeIsDirectory)
}

func TestSameObject(t *testing.T) {
	t.Parallel()
	g, _ := fileGuest(t)
	root, docs := g.preopen(0), g.preopen(1)
	a, again := g.open(root, "a.txt", 0, read|write), g.open(root, "sub/../a.txt", 0, read)
	b := g.open(root, "sub/b.txt", 0, read)
	for _, pair := range [][2]any{{a, again}, {root, root}} {
		g.want(g.do("wasi:filesystem/types#[method]descriptor.is-same-object", pair[0], pair[1]), true)
	}
	for _, pair := range [][2]any{{a, b}, {a, root}, {root, docs}} {
		g.want(g.do("wasi:filesystem/types#[method]descriptor.is-same-object", pair[0], pair[1]), false)
	}
	before := g.file("metadata-hash", a).Value.([]any)
	g.want(g.file("metadata-hash-at", root, uint32(follow), "a.txt").Value, before)
	g.file("set-size", a, uint64(9))
	after := g.file("metadata-hash", a).Value.([]any)
	if before[0] != after[0] || before[1] == after[1] {
		t.Errorf("%v, after a change %v", before, after)
	}
	if other := g.file("metadata-hash", b).Value.([]any); other[0] == after[0] {
		t.Error("two files have the same hash")
	}
}

func TestHostilePaths(t *testing.T) {
	t.Parallel()
	g, dir := fileGuest(t)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, target := range map[string]string{"out": outside, "up": "../..", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root := g.preopen(0)
	sub, docs := g.open(root, "sub", directory, read), g.preopen(1)
	for path, code := range map[string]int{
		"": codeNoEntry, "/a.txt": codeNotPermitted, "..": codeNotPermitted, "../x": codeNotPermitted,
		"a/../../x": codeNotPermitted, "out": codeNotPermitted, "up/x": codeNotPermitted, "loop": codeLoop,
		"secret.txt": codeNoEntry, "SECRET.txt": codeNoEntry, "a\x00b": codeInvalid, "a.txt/x": codeNotDirectory,
		"a.txt/": codeNotDirectory, strings.Repeat("a/", 2049): codeName,
	} {
		g.wantCode(g.file("open-at", root, uint32(follow), path, uint32(0), uint32(read)), code)
		g.wantCode(g.file("stat-at", root, uint32(follow), path), code)
		g.wantCode(g.file("metadata-hash-at", root, uint32(follow), path), code)
	}
	for name, got := range map[string]component.Case{
		"above a directory": g.file("open-at", sub, uint32(0), "../a.txt", uint32(0), uint32(read)),
		"rename out":        g.file("rename-at", sub, "b.txt", sub, "../b.txt"),
		"hard link":         g.file("link-at", root, uint32(0), "a.txt", root, "b"),
		"symbolic link":     g.file("symlink-at", root, "/etc", "etc"),
		"link out":          g.file("readlink-at", root, "out"),
	} {
		if got != component.Failed(component.Case{Number: codeNotPermitted}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	g.wantCode(g.file("rename-at", root, "a.txt", docs, "a.txt"), codeCrossDevice)
	g.wantCode(g.file("open-at", docs, uint32(0), "new", uint32(create), uint32(write)), codeReadOnly)
	g.wantCode(g.file("open-at", docs, uint32(0), "c.txt", uint32(trunc), uint32(read)), codeReadOnly)
	g.wantCode(g.file("open-at", docs, uint32(0), ".", uint32(directory), uint32(mutate)), codeReadOnly)
	g.wantCode(g.file("create-directory-at", docs, "new"), codeReadOnly)
	g.wantCode(g.file("open-at", root, uint32(0), "a.txt", uint32(directory), uint32(read)), codeNotDirectory)
	g.wantCode(g.file("open-at", root, uint32(0), "a.txt", uint32(create|directory), uint32(write)), codeInvalid)
	g.wantCode(g.file("open-at", root, uint32(0), "a.txt", uint32(0), uint32(read|4)), codeUnsupported)
	g.wantCode(g.file("open-at", root, uint32(0), "a.txt", uint32(create|exclusive), uint32(write)), codeExist)
	f := g.open(root, "a.txt", 0, read)
	g.wantCode(g.file("open-at", f, uint32(0), "x", uint32(0), uint32(read)), codeNotDirectory)
	if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file outside the mount: %v", err)
	}
}

// A call that has ended leaves no file open, and its descriptors are worth nothing in the next.
func TestFilesEndWithTheCall(t *testing.T) {
	t.Parallel()
	g, _ := fileGuest(t)
	root := g.preopen(0)
	f, sub := g.open(root, "a.txt", 0, read), g.open(root, "sub", directory, read)
	in, list := g.file("read-via-stream", f, uint64(0)).Value, g.file("read-directory", sub).Value
	g.open(root, "a.txt", 0, read)
	g.wantCode(g.file("open-at", root, uint32(0), "a.txt", uint32(0), uint32(read)), codeMemory)
	if !strings.Contains(g.log.String(), "limits.openFiles") {
		t.Errorf("the log is %q", &g.log)
	}
	g.end()
	g.call = &broker.Call{Spend: g.call.Spend}
	g.wantCode(g.file("stat", f), codeDescriptor)
	g.wantCode(g.file("stat-at", sub, uint32(0), "b.txt"), codeDescriptor)
	g.wantCode(g.file("rename-at", root, "a.txt", sub, "a.txt"), codeDescriptor)
	g.want(g.failed("wasi:io/streams#[method]input-stream.read", in, uint64(1)), closed)
	g.wantCode(g.do("wasi:filesystem/types#[method]directory-entry-stream.read-directory-entry", list).(component.Case),
		codeDescriptor)
	g.want(g.do("wasi:filesystem/types#[method]descriptor.is-same-object", f, f), false)
	for range 4 {
		g.open(root, "a.txt", 0, read)
	}
	for _, r := range []any{f, sub, in, list} {
		if _, lasts := r.(component.Lasting); lasts {
			t.Errorf("a %T lasts", r)
		}
		drop(r)
	}
}

func TestFilesEndWithTheContext(t *testing.T) {
	t.Parallel()
	g, _ := fileGuest(t)
	root := g.preopen(0)
	in := g.file("read-via-stream", g.open(root, "a.txt", 0, read), uint64(0)).Value
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	g.ctx = ctx
	for function, args := range map[string][]any{
		"wasi:filesystem/types#[method]descriptor.stat-at": {root, uint32(0), "a.txt"},
		"wasi:io/streams#[method]input-stream.read":        {in, uint64(9)},
	} {
		if err := g.trap(function, args...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", function, err)
		}
	}
}

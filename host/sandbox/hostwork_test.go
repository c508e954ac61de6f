package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/guestcode"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// Addresses in the memory of the guests of this file.
const (
	pathAt    = 1 << 10
	resultAt  = 16 << 10
	vectorsAt = 1 << 20
	bufferAt  = 8 << 20
	// opened is the descriptor of the first file that a guest with one mount opens.
	opened = int32(5)
)

// iovecs returns count vectors of length bytes each, at bufferAt.
func iovecs(count, length int) []byte {
	var out []byte
	for range count {
		out = binary.LittleEndian.AppendUint32(out, bufferAt)
		out = binary.LittleEndian.AppendUint32(out, uint32(length))
	}
	return out
}

// openPath opens the path at pathAt with rights to read and write.
func openPath(path string, oflags int32) guestcode.HostCall {
	return guestcode.WASI("path_open", int32(3), int32(0), int32(pathAt), int32(len(path)), oflags, int64(1<<1|1<<6),
		int64(0), int32(0), int32(resultAt))
}

// late is the time after which a call with a deadline of less than a second is late, on the busiest machine.
const late = 20 * time.Second

// TestHostileHostWork makes a guest call each host function in a loop with as much data as it accepts. Every call must
// end at its deadline or with its CPU budget.
func TestHostileHostWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sparse(t, filepath.Join(dir, "sparse"), 1<<40)
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("entry-%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deep := strings.Repeat("d/", 500)
	if err := os.MkdirAll(filepath.Join(dir, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	readOnly := int64(1 << 1)
	list := guestcode.WASI("path_open", int32(3), int32(0), int32(pathAt), int32(1), int32(2), readOnly, int64(0),
		int32(0), int32(resultAt))
	file := func(name string, args ...any) []guestcode.HostCall {
		return []guestcode.HostCall{guestcode.WASI(name, append([]any{opened}, args...)...)}
	}
	path := func(name string, args ...any) []guestcode.HostCall {
		return []guestcode.HostCall{guestcode.WASI(name, args...)}
	}
	sparseFile := []guestcode.HostCall{openPath("sparse", 0)}
	written := []guestcode.HostCall{openPath("written", 1)}
	long := int32(60 << 20)
	for name, c := range map[string]struct {
		path    string
		vectors []byte
		once    []guestcode.HostCall
		loop    []guestcode.HostCall
	}{
		"fd_read: 2,000 vectors of 50 MB": {"sparse", iovecs(2000, 50e6), sparseFile,
			file("fd_read", int32(vectorsAt), int32(2000), int32(resultAt))},
		"fd_pread: 2,000 vectors of 50 MB": {"sparse", iovecs(2000, 50e6), sparseFile,
			file("fd_pread", int32(vectorsAt), int32(2000), int64(0), int32(resultAt))},
		"fd_pread: 100,000 vectors of 1 byte": {"sparse", iovecs(100_000, 1), sparseFile,
			file("fd_pread", int32(vectorsAt), int32(100_000), int64(0), int32(resultAt))},
		"fd_read: 500,000 empty vectors": {"sparse", iovecs(500_000, 0), sparseFile,
			file("fd_read", int32(vectorsAt), int32(500_000), int32(resultAt))},
		"fd_pwrite: 2,000 vectors of 50 MB": {"written", iovecs(2000, 50e6), written,
			file("fd_pwrite", int32(vectorsAt), int32(2000), int64(0), int32(resultAt))},
		"fd_write: 100,000 vectors of 1 byte to the log": {"", iovecs(100_000, 1), nil,
			path("fd_write", int32(1), int32(vectorsAt), int32(100_000), int32(resultAt))},
		"fd_write: 50 MB to the log": {"", iovecs(1, 50e6), nil, path("fd_write", int32(2), int32(vectorsAt),
			int32(1), int32(resultAt))},
		"fd_readdir: all entries at once": {".", nil, []guestcode.HostCall{list},
			file("fd_readdir", int32(bufferAt), int32(1<<20), int64(0), int32(resultAt))},
		"fd_readdir: into 50 MiB": {".", nil, []guestcode.HostCall{list},
			file("fd_readdir", int32(bufferAt), int32(50<<20), int64(0), int32(resultAt))},
		"fd_readdir: by small pieces": {".", nil, []guestcode.HostCall{list},
			file("fd_readdir", int32(bufferAt), int32(64), int64(0), int32(resultAt))},
		"fd_allocate and fd_filestat_set_size": {"written", nil, written, []guestcode.HostCall{
			guestcode.WASI("fd_allocate", opened, int64(0), int64(1<<40)), guestcode.WASI("fd_filestat_set_size",
				opened, int64(0)),
		}},
		"fd_filestat_get": {"written", nil, written, file("fd_filestat_get", int32(resultAt))},
		"fd_sync":         {"written", nil, written, file("fd_sync")},
		"poll_oneoff: 1,000,000 subscriptions": {"", nil, nil,
			path("poll_oneoff", int32(bufferAt), int32(pathAt), int32(1_000_000), int32(resultAt))},
		"poll_oneoff: 1,000 subscriptions to files": {"", nil, nil,
			path("poll_oneoff", int32(bufferAt), int32(40<<20), int32(1_000), int32(resultAt))},
		"random_get: 50 MB": {"", nil, nil, path("random_get", int32(bufferAt), int32(50e6))},
		"path_open: 60 MB": {"", nil, nil, path("path_open", int32(3), int32(0), int32(0), long, int32(0), readOnly,
			int64(0), int32(0), int32(resultAt))},
		"path_rename: 60 MB":  {"", nil, nil, path("path_rename", int32(3), int32(0), long, int32(3), int32(0), long)},
		"path_symlink: 60 MB": {"", nil, nil, path("path_symlink", int32(0), long, int32(3), int32(0), long)},
		"path_open: 500 deep": {deep, nil, nil, path("path_open", int32(3), int32(0), int32(pathAt), int32(len(deep)),
			int32(2), readOnly, int64(0), int32(0), int32(resultAt))},
		"path_filestat_get": {deep, nil, nil, path("path_filestat_get", int32(3), int32(1), int32(pathAt),
			int32(len(deep)), int32(resultAt))},
		"path_unlink_file": {deep, nil, nil, path("path_unlink_file", int32(3), int32(pathAt), int32(len(deep)))},
		"path_rename: a tree": {"d", nil, nil, path("path_rename", int32(3), int32(pathAt), int32(1), int32(3),
			int32(pathAt), int32(1))},
		"path_filestat_get: 7,000 dots": {strings.Repeat("./", 7000) + "d", nil, nil, path("path_filestat_get", int32(3),
			int32(1), int32(pathAt), int32(14_001), int32(resultAt))},
		"path_filestat_get: 2,500 times up and down": {strings.Repeat("d/../", 2500) + "d", nil, nil,
			path("path_filestat_get", int32(3), int32(1), int32(pathAt), int32(12_501), int32(resultAt))},
		"path_create_directory: 7,000 names": {strings.Repeat("d/", 7000), nil, nil, path("path_create_directory", int32(3),
			int32(pathAt), int32(14_000))},
		"path_readlink: 60 MB": {"", nil, nil, path("path_readlink", int32(3), int32(0), long, int32(0), long,
			int32(resultAt))},
		"path_link: 60 MB": {"", nil, nil, path("path_link", int32(3), int32(0), int32(0), long, int32(3), int32(0), long)},
		"fd_pwrite: at the end of the largest file": {"written", iovecs(1, 50e6), written,
			file("fd_pwrite", int32(vectorsAt), int32(1), int64(1<<62), int32(resultAt))},
		"fd_seek and fd_tell": {"sparse", nil, sparseFile, []guestcode.HostCall{
			guestcode.WASI("fd_seek", opened, int64(1<<62), int32(1), int32(resultAt)),
			guestcode.WASI("fd_tell", opened, int32(resultAt)),
		}},
		"clock_time_get": {"", nil, nil, path("clock_time_get", int32(0), int64(0), int32(resultAt))},
		"sched_yield":    {"", nil, nil, path("sched_yield")},
		"hako:core/1 log": {"", nil, nil,
			[]guestcode.HostCall{{Module: abi.CoreModule, Name: "log",
				Args: []any{int32(0), int32(bufferAt), int32(50e6)}}}},
		"hako:core/1 progress": {"", nil, nil,
			[]guestcode.HostCall{{Module: abi.CoreModule, Name: "progress",
				Args: []any{1.0, 1.0, int32(bufferAt), int32(50e6)}}}},
		"hako:core/1 updated": {"", nil, nil,
			[]guestcode.HostCall{{Module: abi.CoreModule, Name: "updated", Args: []any{int32(bufferAt), int32(2048)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := map[int32][]byte{pathAt: []byte(c.path), vectorsAt: c.vectors}
			plugin := mountedPlugin(t, dir, guestcode.Calls(64, memory, c.once, c.loop),
				manifest.Limits{Memory: 64 << 20})
			call := func(limits manifest.Limits) error {
				_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool},
					Limits: limits})
				return err
			}
			start := time.Now()
			err := call(manifest.Limits{Time: 200 * time.Millisecond, CPU: 1 << 20})
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > late {
				t.Errorf("after %v: %v", took, err)
			}
			// What the host does costs steps: 50 ms of a core, in steps, end long before the deadline.
			var exceeded *limit.Error
			if err := call(manifest.Limits{Time: patience, CPU: 1}); !errors.As(err, &exceeded) ||
				exceeded.Limit != limit.CPU {
				t.Error(err)
			}
		})
	}
}

// TestHostileHostWorkCanceled cancels sixteen calls while the host reads a sparse file for each: closing the plugin
// must not wait long.
func TestHostileHostWorkCanceled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sparse(t, filepath.Join(dir, "sparse"), 1<<40)
	wasm := guestcode.Calls(64, map[int32][]byte{pathAt: []byte("sparse"), vectorsAt: iovecs(2000, 50e6)},
		[]guestcode.HostCall{openPath("sparse", 0)},
		[]guestcode.HostCall{guestcode.WASI("fd_pread", opened, int32(vectorsAt), int32(2000), int64(0),
			int32(resultAt))})
	plugin := mountedPlugin(t, dir, wasm, manifest.Limits{Memory: 64 << 20, Time: time.Hour, CPU: 100_000_000,
		Concurrency: 16})
	t.Run("sixteen callers leave", func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer leave()
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				_, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool}})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		<-ctx.Done()
		start := time.Now()
		calls.Wait()
		if err := plugin.Close(); err != nil || time.Since(start) > late {
			t.Errorf("closed %v after the callers had left: %v", time.Since(start), err)
		}
	})
}

func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, size)); err != nil {
		testprogram.Missing(t, "no sparse files here: "+err.Error())
	}
}

// mountedPlugin loads a guest with a writable mount.
func mountedPlugin(t *testing.T, dir string, wasm []byte, limits manifest.Limits) *sandbox.Plugin {
	t.Helper()
	mount, err := file.New(grant.Mount{Name: "workspace", Path: dir, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.Close() })
	return newPlugin(t, sandbox.Options{}, sandbox.Spec{
		Wasm: func() ([]byte, error) { return wasm, nil }, Mounts: []*file.Mount{mount}, Limits: limits,
	})
}

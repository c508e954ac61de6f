// Package guesttest provides guests for tests. Build compiles a guest of this repository, Assemble makes one from
// machine code; Hostile, Bombs and Oversized return hostile guests.
package guesttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/internal/wholefile"
)

var buildLocks sync.Map // directory -> *sync.Mutex

// Build returns the guest in the directory dir, relative to the repository's root
// ("dev/kit/guesttest/guests/probe"). The result is cached in the user's cache directory until a source file
// changes.
func Build(t testing.TB, dir string) []byte {
	t.Helper()
	lock, _ := buildLocks.LoadOrStore(dir, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	root := Root()
	cached := filepath.Join(cacheDir(t), filepath.Base(dir)+"-"+stamp(t, root, dir)+".wasm")
	if data, err := os.ReadFile(cached); err == nil {
		return data
	}
	temp := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", temp, "./"+dir)
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build guest %s: %v\n%s", dir, err, output)
	}
	data, err := os.ReadFile(temp)
	if err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(cached, data); err != nil {
		t.Fatal(err)
	}
	return data
}

// Root returns the repository's root directory: the one with go.mod, at or above the working directory.
func Root() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	panic("guesttest: the test does not run inside the repository")
}

// Bytes returns a function that returns a module, as hosts and sandboxes take it.
func Bytes(wasm []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return wasm, nil }
}

// CacheDir returns a compilation cache that all tests share.
func CacheDir(t testing.TB) string {
	t.Helper()
	return filepath.Join(cacheDir(t), "compiled")
}

func cacheDir(t testing.TB) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "hako-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stamp is a digest of the sources of guest and PDK and of the version of the compiler.
func stamp(t testing.TB, root, dir string) string {
	t.Helper()
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version())
	for _, tree := range []string{"pdk", dir} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			fmt.Fprintln(hash, path)
			_, err = io.Copy(hash, file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// Code of a guest that expects its data and overwrites it.
const (
	checkData     = "\x41\x08\x2d\x00\x00\x41\x2a\x47\x04\x40\x00\x0b" // if memory[8] != 42 { unreachable }
	overwriteData = "\x41\x08\x41\x00\x3a\x00\x00\x41\x00"             // memory[8] = 0; return 0
	dataSection   = "\x0b\x07\x01\x00\x41\x08\x0b\x01"                 // of one byte at 8, which follows
)

// TestDataIsReadForStart calls a guest in processes that find its code in the cache. They read the plugin for its data
// only if they start it, once.
func TestDataIsReadForStart(t *testing.T) {
	t.Parallel()
	code := guesttest.Assemble(1, []byte(checkData+overwriteData))
	wasm := append(bytes.Clone(code), dataSection+"\x2a"...)
	var dir string
	calls := func(file []byte) (reads int, err error) {
		t.Helper()
		engine, err := sandbox.New(&sandbox.Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		plugin := engine.Load(sandbox.Spec{Name: "data", Digest: "sha256:0123", Wasm: func() ([]byte, error) {
			reads++
			return file, nil
		}, Limits: manifest.Limits{Time: patience}})
		defer func() {
			if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
				t.Error(err)
			}
		}()
		if err := plugin.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err = call(t, plugin, "any", object{})
		}
		if kept := plugin.KeptData(); kept != (len(file) > len(wasm)) {
			t.Errorf("it keeps the data: %v", kept)
		}
		return reads, err
	}
	forget := func() {
		t.Helper()
		for _, path := range images(t, dir) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	const answered = "it did not call respond" // and did not trap
	for name, test := range map[string][]int{"an image": {2, 0, 1}, "a start for each call": {2, 1, 1}} {
		file := wasm
		dir = t.TempDir()
		if name != "an image" {
			const global = "\x06\x06\x01\x70\x01\xd0\x70\x0b" // a mutable reference, which cannot be restored
			file = slices.Insert(bytes.Clone(wasm), bytes.Index(wasm, []byte("\x06memory"))-3, []byte(global)...)
		}
		for n, want := range test {
			if n == 2 {
				forget()
			}
			if reads, err := calls(file); err == nil || !strings.Contains(err.Error(), answered) || reads != want {
				t.Errorf("%s: process %d read the plugin %d times, want %d: %v", name, n, reads, want, err)
			}
		}
		forget()
		if _, err := calls(append(bytes.Clone(code), dataSection+"\x2b"...)); err == nil ||
			!strings.Contains(err.Error(), "the file has changed") {
			t.Errorf("%s: a file that has changed: %v", name, err)
		}
	}
}

// TestStartAfterImage: a plugin that has an image finds its data if it is started all the same. That happens if only the
// first of two concurrent starts leaves a file open: each further call is to start an instance then.
func TestStartAfterImage(t *testing.T) {
	t.Parallel()
	wasm := append(guesttest.Assemble(1, []byte(checkData+overwriteData)), dataSection+"\x2a"...)
	engine, err := sandbox.New(&sandbox.Options{CacheDir: imageDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{Name: "data", Wasm: func() ([]byte, error) { return wasm, nil },
		Limits: manifest.Limits{Time: patience}})
	defer func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, plugin, "any", object{}); err == nil || plugin.KeptData() {
		t.Errorf("after the call: %v, it keeps the data: %v", err, plugin.KeptData())
	}
	if segments, err := plugin.StartData(); err != nil || segments != 1 {
		t.Errorf("%d segments, %v, want 1", segments, err)
	}
}

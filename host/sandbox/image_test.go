package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/sandbox"
)

// imageDir returns a cache directory that shares the compiled code of all tests and has its own images.
func imageDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	compiled, err := filepath.Glob(filepath.Join(guesttest.CacheDir(t), "wazero-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range compiled {
		if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startNumber starts an engine as a new process would, and returns the random number that the guest drew during its
// start.
func startNumber(t *testing.T, dir string, spec sandbox.Spec) string {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	spec.Wasm, spec.Modules = probe(t), []brokerModule{deniedHTTP}
	spec.Limits.Time = patience
	plugin := engine.Load(spec)
	defer func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	number := text(t, plugin, "born", object{})
	if again := text(t, plugin, "born", object{}); again != number {
		t.Errorf("start numbers %s and %s in one process", number, again)
	}
	if got := text(t, plugin, "elapsed", object{}); got != "true" {
		t.Error("the clock of the guest went back")
	}
	return number
}

func images(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "images", "*.image"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestImageOutlivesProcess checks that two processes share one start, and that a spec with another start does not use
// its image.
func TestImageOutlivesProcess(t *testing.T) {
	t.Parallel()
	dir := imageDir(t)
	first := startNumber(t, dir, sandbox.Spec{Name: "a"})
	if again := startNumber(t, dir, sandbox.Spec{Name: "a"}); again != first {
		t.Error("the second process started the guest again")
	}
	larger := sandbox.Spec{Name: "a"}
	larger.Limits.Memory = 96 << 20
	pinned := sandbox.Spec{Name: "a", Clock: func() time.Time { return time.Unix(0, 0) }}
	seen := map[string]bool{first: true}
	for name, spec := range map[string]sandbox.Spec{"another name": {Name: "b"}, "another limit": larger,
		"a pinned clock": pinned} {
		if number := startNumber(t, dir, spec); seen[number] {
			t.Errorf("%s: the image of another start was used", name)
		} else {
			seen[number] = true
		}
	}
	if n := len(images(t, dir)); n != 3 {
		t.Errorf("%d images, want 3: one under a pinned clock is not kept", n)
	}
}

// TestDamagedImage checks that a damaged image is not used and is replaced by a new one.
func TestDamagedImage(t *testing.T) {
	t.Parallel()
	dir := imageDir(t)
	last := startNumber(t, dir, sandbox.Spec{Name: "a"})
	path := images(t, dir)[0]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		data := bytes.Clone(good)
		data[at] ^= 1
		return data
	}
	for name, data := range map[string][]byte{
		"empty": nil, "header": flip(0), "digest": flip(20), "key": flip(60), "global": flip(90), "memory": flip(
			len(good) / 2),
		"truncated": good[:len(good)-1], "longer": append(bytes.Clone(good), 0),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		number := startNumber(t, dir, sandbox.Spec{Name: "a"})
		if number == last {
			t.Errorf("%s: the damaged image was used", name)
		}
		if again := startNumber(t, dir, sandbox.Spec{Name: "a"}); again != number {
			t.Errorf("%s: no good image was left", name)
		}
		last = number
	}
}

// TestMisplacedImage stores an image under the name of another.
func TestMisplacedImage(t *testing.T) {
	t.Parallel()
	dir := imageDir(t)
	a := startNumber(t, dir, sandbox.Spec{Name: "a"})
	from := images(t, dir)[0]
	b := startNumber(t, dir, sandbox.Spec{Name: "b"})
	for _, to := range images(t, dir) {
		if to != from {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	if number := startNumber(t, dir, sandbox.Spec{Name: "b"}); number == a || number == b {
		t.Error("an image under a wrong name was used")
	}
}

func TestWritten(t *testing.T) {
	t.Parallel()
	const block = 4 << 10
	for _, test := range []struct {
		size    int
		touched []int
		want    []int // offset and length in turn
	}{
		{0, nil, nil},
		{8 * block, nil, nil},
		{8 * block, []int{0, 8*block - 1}, []int{0, block, 7 * block, block}},
		{8 * block, []int{block, 2*block + 5, 4 * block}, []int{block, 2 * block, 4 * block, block}},
		{block + 1, []int{block}, []int{block, 1}},
	} {
		data := make([]byte, test.size)
		for _, at := range test.touched {
			data[at] = 1
		}
		var got []int
		for offset, run := range sandbox.NonZeroRuns(data) {
			got = append(got, offset, len(run))
		}
		if len(got) != len(test.want) {
			t.Errorf("%v: %v, want %v", test.touched, got, test.want)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%v: %v, want %v", test.touched, got, test.want)
			}
		}
	}
}

// TestImageIsReadInParts checks that a whole image is never on the heap. It is not parallel, because it counts the bytes
// that the process allocates.
func TestImageIsReadInParts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of an image is on the heap")
	}
	var key [sha256.Size]byte
	memory := bytes.Repeat([]byte("hako"), 2<<20)
	file := sandbox.EncodeImage(memory, []uint64{1, 2}, key)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := sandbox.DecodeImage(file, key); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if read := after.TotalAlloc - before.TotalAlloc; read > uint64(len(memory))/8 {
		t.Errorf("%d bytes are allocated for an image of %d bytes", read, len(memory))
	}
}

// FuzzDecodeImage adds a valid digest to its input, so that the fuzzer gets past the digest check.
func FuzzDecodeImage(f *testing.F) {
	key := sha256.Sum256(nil)
	memory := make([]byte, 1<<16)
	memory[5], memory[60_000] = 1, 2
	good := sandbox.EncodeImage(memory, []uint64{1, 2}, key)
	if err := sandbox.DecodeImage(good, key); err != nil {
		f.Fatal(err)
	}
	const header = 13 + 2*sha256.Size
	f.Add(good[header:])
	f.Add(good[header : len(good)-1])
	f.Fuzz(func(t *testing.T, body []byte) {
		body = append(key[:], body...)
		digest := sha256.Sum256(body)
		_ = sandbox.DecodeImage(append(append([]byte("hako image 2\n"), digest[:]...), body...), key)
	})
}

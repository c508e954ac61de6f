package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/dirtest"
	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// tiny is a guest of ABI 1 that answers nothing: for tests that need many plugins.
const tiny = "\x00asm\x01\x00\x00\x00" +
	"\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f" + // types () -> () and (i32) -> i32
	"\x03\x03\x02\x00\x01" + "\x05\x03\x01\x00\x01" + // two functions, a memory of one page
	"\x07\x23\x03\x06memory\x02\x00\x0ahako_abi_1\x00\x00\x09hako_call\x00\x01" +
	"\x0a\x09\x02\x02\x00\x0b\x04\x00\x41\x00\x0b"

func tinyPlugin(t testing.TB, name, description string) []byte {
	t.Helper()
	text := fmt.Sprintf(
		"name: %s\nversion: 1.0.0\ndescription: %s\ntools: [{name: t_%s, description: d, inputSchema: {type: object}}]\n",
		name, description, name)
	wasm, err := wasmfile.Embed([]byte(tiny), map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// again is another process with the same files.
func (w *world) again(t *testing.T) *world {
	t.Helper()
	options := &host.Options{Folders: []string{w.folder}, Consents: w.consents,
		CacheDir: filepath.Join(filepath.Dir(w.folder), "cache")}
	h, err := host.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.IndexAtOnce()
	other := *w
	other.Host = h
	other.load()
	return &other
}

// TestIndex checks that a file is read again exactly when it has changed.
func TestIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.IndexAtOnce()
	w.put("a.wasm", tinyPlugin(t, "a", "original"))
	w.put("b.wasm", tinyPlugin(t, "b", "original"))
	w.load()
	w.approve("a.wasm", nil)
	w.load()
	path := filepath.Join(filepath.Dir(w.folder), "cache", "index.json")
	index, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(index, []byte(`"Version":1`), []byte(`"Version":0`))
	descriptions := func(w *world) string {
		var list []string
		for _, status := range w.Plugins() {
			list = append(list, string(status.State)+" "+status.Manifest.Description.In("en"))
		}
		return strings.Join(list, ", ")
	}
	const want = "active original, pending original"
	if got := descriptions(w.again(t)); got != want {
		t.Errorf("from the index: %s", got)
	}
	w.put("a.wasm", tinyPlugin(t, "a", "replaced"))
	if got := descriptions(w.again(t)); got != "pending replaced, pending original" {
		t.Errorf("replaced by a file of the same size: %s", got)
	}
	w.put("a.wasm", tinyPlugin(t, "a", "original"))
	for name, data := range map[string][]byte{"another version": changed, "damaged": []byte("{"),
		"null": []byte("null"), "empty": nil} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := descriptions(w.again(t)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if err := os.Remove(filepath.Join(w.folder, "b.wasm")); err != nil {
		t.Fatal(err)
	}
	if got := descriptions(w.again(t)); got != "active original" {
		t.Errorf("with one file gone: %s", got)
	}
	if index, err = os.ReadFile(path); err != nil || bytes.Contains(index, []byte("b.wasm")) {
		t.Errorf("the index keeps what is gone: %v", err)
	}
}

// TestReadOnly: a look at the plugins finds what is there and leaves each file and folder as it is, with its times.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("a.wasm", tinyPlugin(t, "a", "original"))
	w.load()
	w.approve("a.wasm", nil)
	w.load()
	w.IndexAtOnce()
	w.put("a.wasm", tinyPlugin(t, "a", "replaced"))
	dir := filepath.Dir(w.folder)
	shipped, err := wasmfile.Embed([]byte(tiny),
		map[string][]byte{abi.ManifestSection: []byte("name: b\nversion: 1.0.0\ndescription: d\n" +
			"tools: [{name: t_b, description: d, inputSchema: {type: object}}]\n" + asksForMount)})
	if err != nil {
		t.Fatal(err)
	}
	for name, cache := range map[string]string{"used": filepath.Join(dir, "cache"),
		"new": filepath.Join(dir, "nothing")} {
		before := dirtest.List(t, dir)
		h, err := host.New(&host.Options{Folders: []string{w.folder}, Consents: w.consents, CacheDir: cache,
			ReadOnly:      true,
			Shipped:       []host.Shipped{{File: "b.wasm", Wasm: guesttest.Bytes(shipped)}},
			ShippedMounts: map[string]string{"workspace": filepath.Join(dir, "made")}})
		if err != nil {
			t.Fatal(err)
		}
		h.IndexAtOnce()
		if err := h.Load(t.Context()); err != nil {
			t.Error(err)
		}
		for _, found := range h.Plugins() {
			serves := found.Name == "b" || name == "used"
			if serves != (found.Serving != "") {
				t.Errorf("%s: %+v", name, found)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if after := dirtest.List(t, dir); after != before {
			t.Errorf("%s: changed\n%sto\n%s", name, before, after)
		}
	}
}

// TestIndexCannotApprove forges an index: nothing comes into service that was not approved.
func TestIndexCannotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.IndexAtOnce()
	w.put("a.wasm", tinyPlugin(t, "a", "approved"))
	w.put("evil.wasm", tinyPlugin(t, "evil", "not approved"))
	w.load()
	w.approve("a.wasm", nil)
	w.load()
	path := filepath.Join(filepath.Dir(w.folder), "cache", "index.json")
	index, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Version int
		Entries map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(index, &file); err != nil {
		t.Fatal(err)
	}
	a, evil := file.Entries[filepath.Join(w.folder, "a.wasm")], file.Entries[filepath.Join(w.folder, "evil.wasm")]
	a["Module"], evil["Module"] = evil["Module"], a["Module"]
	if index, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, index, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, status := range w.again(t).Plugins() {
		if (status.Serving != "") != (status.Name == "a") {
			t.Errorf("%s is %s from %s", status.Name, status.State, status.Path)
		}
		if status.Name == "evil" && filepath.Base(status.Path) != "a.wasm" {
			t.Error("the forged index was not used: this test shows nothing")
		}
	}
}

// TestCopyIsGone: a copy that another process has pruned, which shares the directory and has another clock, is made
// again from the plugin's file; and copies of what is in service are not old.
func TestCopyIsGone(t *testing.T) {
	t.Parallel()
	var cache string
	w := newWorld(t, func(o *host.Options) { cache = o.CacheDir })
	w.put("hello.wasm", plugin(t, "hello", unknown()...))
	w.approve("hello.wasm", nil)
	w.load()
	copies, err := filepath.Glob(filepath.Join(cache, "plugins", "*.wasm"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.Remove(copies[0]); err != nil {
		t.Fatal(err)
	}
	w.greets("greet", "Hello, Aki")
	old := time.Now().Add(-60 * 24 * time.Hour)
	if err := os.Chtimes(copies[0], old, old); err != nil {
		t.Fatal("there is no copy again: ", err)
	}
	w.KeepCopies()
	if info, err := os.Stat(copies[0]); err != nil || time.Since(info.ModTime()) > 24*time.Hour {
		t.Error(info, err)
	}
}

// TestThousandPlugins lists a thousand, from the files and from the index.
func TestThousandPlugins(t *testing.T) {
	t.Parallel()
	const many = 1000
	w := newWorld(t, nil)
	w.IndexAtOnce()
	var shipped []host.Shipped
	for i := range many {
		name := fmt.Sprintf("p%d", i)
		wasm := tinyPlugin(t, name, "one of many")
		shipped = append(shipped, host.Shipped{File: name + ".wasm", Wasm: guesttest.Bytes(wasm)})
		if err := os.WriteFile(filepath.Join(w.folder, name+".wasm"), wasm, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.load()
	if n := len(w.again(t).Plugins()); n != many {
		t.Errorf("%d plugins of %d", n, many)
	}
	h, err := host.New(&host.Options{Shipped: shipped, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(h.Catalog().View().Tools); n != many {
		t.Errorf("%d tools of %d plugins", n, many)
	}
}

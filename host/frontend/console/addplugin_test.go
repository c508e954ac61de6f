package console_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// folder is a console.PluginFolder over a directory, whose downloads are in files.
type folder struct {
	dir string
	// state is the directory of the cache and the lock file.
	state   string
	maxSize int64
	problem error
	files   map[string][]byte
	signer  signature.Signer
}

func (f *folder) Signer(p *host.Status) (signature.Signer, bool, error) {
	return f.signer, p.Name != "shipped", nil
}

func (f *folder) State() console.PluginFolderState {
	return console.PluginFolderState{Dir: f.dir, MaxSize: f.maxSize, Problem: f.problem}
}

func (f *folder) Fetch(_ context.Context, from *url.URL) ([]byte, error) {
	if wasm, ok := f.files[from.Host+from.Path]; ok {
		return wasm, nil
	}
	return nil, errors.New(from.Host + " is at a private address")
}

func (f *folder) Read(wasm []byte, from, digest string) (*console.Addition, error) {
	at, err := install.Open(&config.Config{Plugins: []string{f.dir}, MaxPluginSize: f.maxSize, Cache: f.state,
		Consents: filepath.Join(f.state, "hako.consents.yaml")})
	if err != nil {
		return nil, err
	}
	p, err := at.Read(&install.Download{Wasm: wasm, Origin: lock.Entry{From: cmp.Or(from, lock.FromFile)}}, digest)
	if err != nil {
		return nil, err
	}
	return &console.Addition{Manifest: p.Manifest, Digest: p.Digest, Path: p.Path, Exists: p.Exists(), Size: len(wasm),
		Signer: f.signer, From: from, Place: p.Place}, nil
}

// pluginOf is a plugin with the manifest.
func pluginOf(t *testing.T, text string) (wasm []byte, digest string) {
	t.Helper()
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/hello"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return wasm, module.Digest
}

// upload sends a file as the page does; change may alter the request.
func (b *browser) upload(path string, wasm []byte, change func(*http.Request)) *answer {
	return b.do("POST", "plugin-folder/"+path, string(wasm), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/wasm")
		if change != nil {
			change(r)
		}
	})
}

func newFolderWorld(t *testing.T) (*world, *folder) {
	f := &folder{maxSize: 16 << 20, state: t.TempDir(), files: map[string][]byte{}}
	w := newWorld(t, func(w *world, o *console.Options) {
		f.dir = w.folder
		o.Folder = f
	})
	return w, f
}

// TestSigner: a plugin is shown with its signer before it is added and after; shipped ones have none.
func TestSigner(t *testing.T) {
	t.Parallel()
	w, f := newFolderWorld(t)
	b := w.as(console.Admin)
	wasm, digest := pluginOf(t, asks("1.0.0", "GET"))
	type signed struct {
		Signer *struct{ Issuer, Subject, Key string }
	}
	for _, signer := range []signature.Signer{{}, {Key: "sha256:00"}, {Issuer: "https://i.example", Subject: "a@example.com"}} {
		f.signer = signer
		var shown, detail signed
		b.upload("read/file", wasm, nil).into(t, &shown)
		b.upload("add/file?replace=true&digest="+digest, wasm, nil).into(t, new(any))
		b.get("plugins/asking").into(t, &detail)
		for name, got := range map[string]signed{"before": shown, "after": detail} {
			if got.Signer == nil || signature.Signer(*got.Signer) != signer {
				t.Errorf("%s: %+v, want %+v", name, got.Signer, signer)
			}
		}
	}
}

// TestAddPlugin: what is added was shown before, waits for consent, and does not replace another file by accident.
func TestAddPlugin(t *testing.T) {
	t.Parallel()
	w, f := newFolderWorld(t)
	b := w.as(console.Admin)
	wasm, digest := pluginOf(t, asks("1.0.0", "GET"))
	f.files["plugins.example/p.wasm"] = wasm
	address := map[string]any{"url": "https://plugins.example/p.wasm?key=secret", "digest": digest}
	for name, read := range map[string]func() *answer{
		"a file":     func() *answer { return b.upload("read/file?lang=ja", wasm, nil) },
		"an address": func() *answer { return b.post("plugin-folder/read/url?lang=ja", address) },
	} {
		var shown struct {
			Name, Version, Digest string
			Asks                  []string
			Exists                bool
		}
		read().into(t, &shown)
		if shown.Name != "asking" || shown.Version != "1.0.0" || shown.Digest != digest || shown.Exists ||
			!strings.Contains(strings.Join(shown.Asks, ""), "尋ねるため") {
			t.Errorf("%s: %+v", name, shown)
		}
	}
	if left, _ := os.ReadDir(w.folder); len(left) != 0 {
		t.Errorf("what was only shown is kept: %v", left)
	}

	b.upload("add/file?digest="+digest, wasm, nil).into(t, new(any))
	var p pluginJSON
	b.get("plugins/asking").into(t, &p)
	if p.State != "pending" || p.Serving != "" || p.Digest != digest {
		t.Errorf("after adding: %+v", p)
	}
	second, other := pluginOf(t, asks("2.0.0", "GET, POST"))
	f.files["plugins.example/p.wasm"] = second
	for name, test := range map[string]struct {
		got  *answer
		code string
	}{
		"it is there":         {b.upload("add/file?digest="+other, second, nil), "conflict"},
		"nothing was shown":   {b.upload("add/file?replace=true", second, nil), "invalid"},
		"another was shown":   {b.upload("add/file?replace=true&digest="+digest, second, nil), "invalid"},
		"it changed since":    {b.post("plugin-folder/add/url", address), "invalid"},
		"a digest that is no": {b.post("plugin-folder/read/url", map[string]any{"url": address["url"], "digest": "sha256:00"}), "invalid"},
	} {
		if test.got.code() != test.code {
			t.Errorf("%s: %d %s", name, test.got.status, test.got.body)
		}
	}
	address["digest"], address["replace"] = other, true
	b.post("plugin-folder/add/url", address).into(t, new(any))
	if now, err := os.ReadFile(filepath.Join(w.folder, "asking.wasm")); err != nil || !bytes.Equal(now, second) {
		t.Errorf("not replaced: %v", err)
	}
	locked, err := lock.Load(filepath.Join(f.state, lock.FileName))
	if p := locked["asking"]; err != nil || p.From != "https://plugins.example/p.wasm" || p.Wasm != other ||
		p.Previous == nil || p.Previous.From != lock.FromFile || p.Previous.Wasm != digest {
		t.Errorf("the lock file: %+v, %v", p, err)
	}
	if records := w.records(); strings.Count(records, "plugin.add ok admin 203.0.113.7") != 2 {
		t.Errorf("records: %s", records)
	}
	for _, path := range []string{"audit?action=plugin.add", "audit?text=secret"} {
		if got := b.get(path); strings.Contains(got.body, "key=secret") {
			t.Errorf("%s: the query is recorded: %s", path, got.body)
		}
	}
}

// endlessBody is a body of so many bytes. It counts what is read.
type endlessBody struct{ left, read int64 }

func (e *endlessBody) Read(p []byte) (int, error) {
	n := min(int64(len(p)), e.left)
	e.left, e.read = e.left-n, e.read+n
	if n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

// TestAddPluginHostile: what is no plugin for this folder leaves nothing in it, or anywhere else.
func TestAddPluginHostile(t *testing.T) {
	t.Parallel()
	w, f := newFolderWorld(t)
	b := w.as(console.Admin)
	wasm, digest := pluginOf(t, asks("1.0.0", "GET"))
	named := func(name string) []byte {
		wasm, _ := pluginOf(t, strings.Replace(asks("1.0.0", "GET"), "name: asking", "name: "+name, 1))
		return wasm
	}
	for name, file := range map[string][]byte{
		"nothing": {}, "a text": []byte("<!doctype html>"), "an archive": []byte("PK\x03\x04asking.wasm"),
		"a module without a manifest": guesttest.Build(t, "dev/kit/guesttest/guests/hello"),
		"a part of one":               wasm[:len(wasm)/2],
		"a name with a path":          named("../../evil"), "an absolute name": named("/etc/evil"),
		"a name with a backslash": named(`..\evil`), "a name of a device": named("CON.txt"),
		"a name with a NUL": named(`"evil\0"`), "a hidden name": named(".evil"), "a name like an archive": named("evil.zip"),
	} {
		for _, path := range []string{"read/file", "add/file?replace=true&digest=" + digest} {
			if got := b.upload(path, file, nil); got.code() != "invalid" {
				t.Errorf("%s, %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
	// The client's name of a file goes nowhere: there is no place for one.
	if got := b.upload("add/file?digest="+digest+"&name=../x.wasm", wasm, nil); got.code() != "invalid" {
		t.Errorf("a file name: %d %s", got.status, got.body)
	}
	for name, from := range map[string]string{
		"a private address": "https://10.0.0.1/p.wasm", "no https": "http://plugins.example/p.wasm",
		"a file": "file:///etc/passwd", "a password": "https://a:b@plugins.example/p.wasm", "no address": "https:///p.wasm",
		"no URL": ":", "nothing": "",
	} {
		if got := b.post("plugin-folder/read/url", map[string]string{"url": from}); got.code() != "invalid" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for name, length := range map[string]int64{"with its length": 4 << 30, "without": -1} {
		body := &endlessBody{left: 4 << 30}
		r := b.request("POST", "plugin-folder/read/file", nil)
		r.Body, r.ContentLength = io.NopCloser(body), length
		r.Header.Set("Content-Type", "application/wasm")
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)
		if out.Code != http.StatusRequestEntityTooLarge || body.read > f.maxSize+1 || length > 0 && body.read > 0 {
			t.Errorf("4 GiB %s: %d after %d bytes: %s", name, out.Code, body.read, out.Body)
		}
	}
	for name, test := range map[string]struct {
		got  *answer
		code string
	}{
		"a viewer":     {w.as(console.Viewer).upload("add/file?digest="+digest, wasm, nil), "forbidden"},
		"an approver":  {w.as(console.Approver).upload("read/file", wasm, nil), "forbidden"},
		"nobody":       {w.browser().upload("add/file?digest="+digest, wasm, nil), "unauthenticated"},
		"another site": {b.upload("add/file?digest="+digest, wasm, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }), "csrf"},
		"without CSRF": {b.upload("add/file?digest="+digest, wasm, func(r *http.Request) { r.Header.Del("X-Hako-CSRF") }), "csrf"},
		"a form": {b.upload("add/file?digest="+digest, wasm,
			func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }), "invalid"},
	} {
		if test.got.code() != test.code {
			t.Errorf("%s: %d %s", name, test.got.status, test.got.body)
		}
	}
	f.problem = errors.New("hako cannot write to the plugin folder /plugins: read-only file system")
	if got := b.upload("add/file?digest="+digest, wasm, nil); got.code() != "unavailable" || !strings.Contains(got.body, "read-only") {
		t.Errorf("a folder that is read-only: %d %s", got.status, got.body)
	}
	if got := b.get("plugin-folder"); !strings.Contains(got.body, "read-only file system") {
		t.Errorf("the state: %s", got.body)
	}
	for _, dir := range []string{w.folder, filepath.Dir(w.folder)} {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			if err != nil || strings.Contains(e.Name(), "evil") || dir == w.folder {
				t.Errorf("left in %s: %s, %v", dir, e.Name(), err)
			}
		}
	}
}

// TestAddPluginUnrecorded: nothing is put into the folder that cannot be recorded.
func TestAddPluginUnrecorded(t *testing.T) {
	t.Parallel()
	var log *journal
	f := &folder{maxSize: 16 << 20, state: t.TempDir()}
	w := newWorld(t, func(w *world, o *console.Options) {
		f.dir, log = w.folder, o.Journal.(*journal)
		o.Folder = f
	})
	b := w.as(console.Admin)
	wasm, digest := pluginOf(t, asks("1.0.0", "GET"))
	log.fail = errors.New("disk full")
	if got := b.upload("add/file?digest="+digest, wasm, nil); got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if left, _ := os.ReadDir(w.folder); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// plugin makes a plugin called name from the guest hello. edits are replacements in its manifest, old and new in turn.
func plugin(t testing.TB, name string, edits ...string) []byte {
	t.Helper()
	text := strings.NewReplacer(append([]string{"NAME", name}, edits...)...).Replace(`
name: NAME
version: 1.0.0
description: {en: Greets., ja: 挨拶します。}
license: Apache-2.0
tools:
  - name: greet
    description: Greets.
    inputSchema: {type: object, properties: {name: {type: string}}, required: [name]}
  - name: wait
    description: Waits.
    inputSchema: {type: object}
  - name: look
    description: Looks.
    inputSchema: {type: object}
config:
  word: {type: string, default: Hello}
#permissions
`)
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/hello"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// unknown returns edits for a plugin that no cache knows: not even its outline is there.
func unknown() []string {
	return []string{"挨拶します。", fmt.Sprintf("%d。", time.Now().UnixNano())}
}

const asksForMount = "permissions: {files: [{mount: workspace, access: read-only, reason: to look}]}"

// world is a host with a folder and a consent file.
type world struct {
	*host.Host
	t        testing.TB
	folder   string
	consents string
}

// patience is the time that calls have in tests that are not about it, and how long those wait: guests may run in the
// interpreter, under the race detector, on a busy machine.
const patience = 10 * time.Minute

func newWorld(t testing.TB, change func(*host.Options)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, folder: filepath.Join(dir, "plugins"), consents: filepath.Join(dir, "consents.yaml")}
	if err := os.Mkdir(w.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	options := &host.Options{Folders: []string{w.folder}, Consents: w.consents, CacheDir: filepath.Join(dir, "cache"),
		Limits: manifest.Limits{Time: patience}}
	if change != nil {
		change(options)
	}
	// Compiled code is shared by all tests: compiling takes seconds.
	if options.CacheDir != "" {
		if err := os.MkdirAll(options.CacheDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(guesttest.CacheDir(t), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(guesttest.CacheDir(t), filepath.Join(options.CacheDir, "compiled")); err != nil &&
			!errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	var err error
	if w.Host, err = host.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// put writes a file of the folder in one step.
func (w *world) put(file string, data []byte) {
	w.t.Helper()
	temp := filepath.Join(w.folder, ".new")
	if err := errors.Join(os.WriteFile(temp, data, 0o644), os.Rename(temp, filepath.Join(w.folder, file))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() {
	w.t.Helper()
	if err := w.Load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// prepare waits until the plugins are compiled, for tests whose guests compute much: under the race detector, the
// interpreter takes minutes for what compiled code does in a second.
func (w *world) prepare() {
	w.t.Helper()
	if err := w.Prepare(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// approve says yes to the plugin in file, as the operator would.
func (w *world) approve(name string, mounts map[string]grant.Mount) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.folder, name))
	if err != nil {
		w.t.Fatal(err)
	}
	module, err := wasmfile.Read(data)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := manifest.ParseModule(module)
	if err != nil {
		w.t.Fatal(err)
	}
	file, err := grant.Load(w.consents)
	if err != nil {
		w.t.Fatal(err)
	}
	consent := grant.Consent{Name: m.Name, Version: m.Version, Digest: module.Digest, Asked: m.Permissions,
		ApprovedBy: "test", Mounts: mounts}
	if m.Permissions.Exec != nil {
		consent.Exec.Programs = m.Permissions.Exec.Programs
	}
	if err := file.Approve(w.t.Context(), consent); err != nil {
		w.t.Fatal(err)
	}
}

// status is the state and reason of the plugin in file.
func (w *world) status(file string) host.Status {
	w.t.Helper()
	for _, status := range w.Plugins() {
		if filepath.Base(status.Path) == file {
			return status
		}
	}
	return host.Status{}
}

func (w *world) expect(file string, state host.State, reason string) host.Status {
	w.t.Helper()
	status := w.status(file)
	if status.State != state || !strings.Contains(status.Reason, reason) {
		w.t.Errorf("%s is %s (%s), want %s (%s)", file, status.State, status.Reason, state, reason)
	}
	return status
}

func (w *world) call(tool, arguments string) (string, error) {
	result, err := w.Call(w.t.Context(), &pipeline.Call{Request: abi.Request{
		Method: abi.CallTool, Name: tool, Arguments: json.RawMessage(arguments),
	}})
	if err != nil {
		return "", err
	}
	return result.Response.Content[0].Text, nil
}

func (w *world) greets(tool, want string) {
	w.t.Helper()
	if got, err := w.call(tool, `{"name":"Aki"}`); err != nil || got != want {
		w.t.Errorf("%s = %q, %v; want %q", tool, got, err, want)
	}
}

func (w *world) tools() string {
	var names []string
	for _, tool := range w.Catalog().View().Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// TestRoadOfAFile follows a plugin from the folder to its removal.
func TestRoadOfAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("hello.wasm", plugin(t, "hello"))
	w.load()
	if s := w.expect("hello.wasm", host.Pending, "hako plugin approve hello"); !s.NeedsConsent {
		t.Error("a new plugin does not need consent")
	}
	if got := w.tools(); got != "" {
		t.Errorf("a pending plugin offers %s", got)
	}
	var denied *pipeline.NotAllowedError
	if _, err := w.call("greet", `{"name":"Aki"}`); !errors.As(err, &denied) ||
		!strings.Contains(err.Error(), "approve") {
		t.Errorf("a pending tool: %v", err)
	}

	w.approve("hello.wasm", nil)
	w.load()
	w.expect("hello.wasm", host.Active, "")
	w.greets("greet", "Hello, Aki")

	w.put("hello.wasm", []byte("not Wasm"))
	w.load()
	w.expect("hello.wasm", host.Broken, "stays in service")
	w.greets("greet", "Hello, Aki")

	w.put("hello.wasm", plugin(t, "hello", "default: Hello", "default: Hi", "1.0.0", "1.0.1"))
	w.load()
	w.expect("hello.wasm", host.Pending, "")
	w.greets("greet", "Hello, Aki")
	w.approve("hello.wasm", nil)
	w.load()
	w.expect("hello.wasm", host.Active, "")
	w.greets("greet", "Hi, Aki")

	if err := os.Remove(filepath.Join(w.folder, "hello.wasm")); err != nil {
		t.Fatal(err)
	}
	w.load()
	var missing *pipeline.NotFoundError
	if _, err := w.call("greet", `{}`); !errors.As(err, &missing) {
		t.Errorf("a removed tool: %v", err)
	}
	if list := w.Plugins(); len(list) != 0 {
		t.Errorf("left: %+v", list)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("hello.wasm", plugin(t, "hello"))
	w.load()
	w.approve("hello.wasm", nil)
	w.load()
	w.greets("greet", "Hello, Aki")
	file, err := grant.Load(w.consents)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Revoke(t.Context(), "hello", "test"); err != nil {
		t.Fatal(err)
	}
	w.load()
	w.expect("hello.wasm", host.Revoked, "")
	if got := w.tools(); got != "" {
		t.Errorf("a revoked plugin offers %s", got)
	}
}

// TestUpdateThatAsksForMore keeps the old version in service, also over a restart.
func TestUpdateThatAsksForMore(t *testing.T) {
	t.Parallel()
	var options host.Options
	w := newWorld(t, func(o *host.Options) {
		o.Updates = grant.SamePermissions
		options = *o
	})
	w.put("hello.wasm", plugin(t, "hello"))
	w.load()
	w.approve("hello.wasm", nil)
	w.load()
	w.put("hello.wasm", plugin(t, "hello", "default: Hello", "default: Hi"))
	w.load()
	w.expect("hello.wasm", host.Active, "")
	w.greets("greet", "Hi, Aki")

	w.put("hello.wasm", plugin(t, "hello", "default: Hello", "default: Hey", "#permissions", asksForMount))
	w.load()
	status := w.expect("hello.wasm", host.Pending, "workspace")
	if status.Serving == "" || status.Serving == status.Digest {
		t.Errorf("serving %s of %s", status.Serving, status.Digest)
	}
	w.greets("greet", "Hi, Aki")

	again := newWorld(t, func(o *host.Options) { *o = options })
	again.load()
	again.expect("hello.wasm", host.Pending, "workspace")
	again.greets("greet", "Hi, Aki")
}

func TestMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("a note"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.put("hello.wasm", plugin(t, "hello", "#permissions", asksForMount))
	w.load()
	w.approve("hello.wasm", map[string]grant.Mount{"workspace": {Name: "workspace", Path: dir}})
	w.load()
	if got, err := w.call("look", `{}`); err != nil || got != "a note" {
		t.Errorf("look = %q, %v", got, err)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) { o.Settings = map[string]host.Settings{"third": {Prefix: "third_"}} })
	w.put("a.wasm", plugin(t, "first"))
	w.put("b.wasm", plugin(t, "second"))
	w.put("c.wasm", plugin(t, "third"))
	w.put("d.wasm", plugin(t, "first", "1.0.0", "2.0.0"))
	w.load()
	for _, file := range []string{"a.wasm", "b.wasm", "c.wasm"} {
		w.approve(file, nil)
	}
	w.load()
	w.expect("a.wasm", host.Active, "")
	status := w.expect("b.wasm", host.Conflict, "offered by both first and second")
	if !strings.Contains(status.Reason, "plugin.second.prefix") {
		t.Errorf("no remedy in %q", status.Reason)
	}
	w.expect("c.wasm", host.Active, "")
	w.expect("d.wasm", host.Conflict, "a.wasm")
	w.greets("third_greet", "Hello, Aki")

	if err := os.Remove(filepath.Join(w.folder, "a.wasm")); err != nil {
		t.Fatal(err)
	}
	w.load()
	w.expect("b.wasm", host.Active, "")
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	good := plugin(t, "hello")
	w := newWorld(t, func(o *host.Options) { o.MaxPluginSize = int64(len(good)) + 100 })
	for file, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty.wasm":     {nil, ""},
		"text.wasm":      {[]byte("<html>"), ""},
		"truncated.wasm": {good[:len(good)/2], ""},
		"huge.wasm":      {append(good, make([]byte, 200)...), ""},
		"bare.wasm":      {guesttest.Build(t, "dev/kit/guesttest/guests/hello"), "manifest"},
		"future.wasm":    {[]byte(strings.ReplaceAll(string(good), "hako_abi_1", "hako_abi_9")), "ABI"},
		"unknown.wasm":   {plugin(t, "unknown", "license:", "licence:"), "license"},
		"settings.wasm":  {plugin(t, "settings", "default: Hello", "default: 7"), "config.word"},
	} {
		w.put(file, test.data)
		defer func() { w.expect(file, host.Broken, test.want) }()
	}
	w.put("hello.wasm", good)
	w.load()
	w.approve("hello.wasm", nil)
	w.load()
	w.greets("greet", "Hello, Aki")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Settings = map[string]host.Settings{
			"hello": {Prefix: "x_", Config: map[string]any{"word": "Ciao"}},
			"wrong": {Config: map[string]any{"wordd": "Ciao"}},
		}
	})
	w.put("hello.wasm", plugin(t, "hello"))
	w.put("wrong.wasm", plugin(t, "wrong"))
	w.load()
	w.approve("hello.wasm", nil)
	w.approve("wrong.wasm", nil)
	w.load()
	w.greets("x_greet", "Ciao, Aki")
	w.expect("wrong.wasm", host.Broken, `"word"`)
}

func TestShipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, func(o *host.Options) {
		o.Consents = ""
		o.Shipped = []host.Shipped{
			{File: "hello.wasm", Wasm: guesttest.Bytes(plugin(t, "hello"))},
			{File: "mounted.wasm",
				Wasm: guesttest.Bytes(plugin(t, "mounted", "#permissions", asksForMount, "greet", "greet2", "wait",
					"wait2",
					"look", "look2"))},
		}
		o.ShippedMounts = map[string]string{"workspace": filepath.Join(dir, "made")}
	})
	w.load()
	w.expect("hello.wasm", host.Active, "")
	w.expect("mounted.wasm", host.Active, "")
	w.greets("greet", "Hello, Aki")
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
	w.put("mine.wasm", plugin(t, "hello", "default: Hello", "default: Mine"))
	w.load()
	w.expect("mine.wasm", host.Pending, "")
	w.greets("greet", "Hello, Aki")
	consents := filepath.Join(dir, "consents.yaml")
	w = newWorld(t, func(o *host.Options) {
		o.Consents = consents
		o.Shipped = []host.Shipped{{File: "hello.wasm", Wasm: guesttest.Bytes(plugin(t, "hello"))}}
	})
	w.consents = consents
	w.put("mine.wasm", plugin(t, "hello", "default: Hello", "default: Mine"))
	w.approve("mine.wasm", nil)
	w.load()
	w.expect("mine.wasm", host.Active, "")
	w.expect("hello.wasm", host.Conflict, "mine.wasm takes its place")
	w.greets("greet", "Mine, Aki")
	if err := os.Remove(filepath.Join(w.folder, "mine.wasm")); err != nil {
		t.Fatal(err)
	}
	w.load()
	w.expect("hello.wasm", host.Active, "")
}

// TestShippedIsReadLate: a shipped plugin whose module is known is read only for its code, no copy of it is kept, and the
// next process does not read it at all. A program whose parts do not belong together does not run the plugin.
func TestShippedIsReadLate(t *testing.T) {
	t.Parallel()
	wasm := plugin(t, "hello", unknown()...)
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	shipped := []host.Shipped{{File: "hello.wasm", Module: module, Wasm: func() ([]byte, error) {
		reads.Add(1)
		return wasm, nil
	}}}
	dir := t.TempDir()
	w := newWorld(t, func(o *host.Options) { o.Shipped, o.DataDir = shipped, dir })
	w.load()
	w.expect("hello.wasm", host.Active, "")
	if n := reads.Load(); n != 0 {
		t.Errorf("read %d times before a call", n)
	}
	w.greets("greet", "Hello, Aki")
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times for a call", n)
	}
	if copies, _ := filepath.Glob(filepath.Join(dir, "plugins", "*.wasm")); len(copies) > 0 {
		t.Errorf("there are copies: %s", copies)
	}
	w.prepare() // the call may have been interpreted
	w = newWorld(t, func(o *host.Options) { o.Shipped = shipped })
	w.load()
	w.greets("greet", "Hello, Aki")
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times by two processes", n)
	}
	if module, err = wasmfile.Read(plugin(t, "hello", unknown()...)); err != nil {
		t.Fatal(err)
	}
	shipped[0].Module = module
	w = newWorld(t, func(o *host.Options) { o.Shipped = shipped })
	w.load()
	if text, _ := w.call("greet", `{"name":"Aki"}`); !strings.Contains(text, "internal error of the host") {
		t.Errorf("other code than that of the module answers %q", text)
	}
}

// TestShippedIsNotValidatedAgain: the manifest of a shipped plugin was validated when the program was built, so a start
// compiles none of its schemas.
func TestShippedIsNotValidatedAgain(t *testing.T) {
	t.Parallel()
	module, err := wasmfile.Read(plugin(t, "hello", "required: [name]", "required: [gone]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.ParseModule(module); err == nil {
		t.Fatal("the schema is valid")
	}
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{{File: "hello.wasm", Module: module, Wasm: func() ([]byte, error) {
			return nil, errors.New("it is not called")
		}}}
	})
	w.load()
	w.expect("hello.wasm", host.Active, "")
}

// TestWatch drops a plugin in, approves, replaces and removes it while calls go on, and sees every step in the catalog.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) { o.Updates = grant.SamePermissions })
	w.load()
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error)
	go func() { watched <- w.Watch(ctx) }()
	changed := make(chan struct{}, 100)
	defer w.Catalog().Watch(func() { changed <- struct{}{} })()
	until := func(what string, holds func() bool) {
		t.Helper()
		deadline := testwait.Context(t).Done()
		for !holds() {
			select {
			case <-changed:
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatalf("%s: %+v", what, w.Plugins())
			}
		}
	}
	w.put("hello.wasm", plugin(t, "hello"))
	until("dropped in", func() bool { return w.status("hello.wasm").State == host.Pending })
	w.approve("hello.wasm", nil)
	until("approved", func() bool { return w.tools() != "" })
	w.greets("greet", "Hello, Aki")

	var callers sync.WaitGroup
	waiting := make(chan struct{}, 4)
	for range 4 {
		callers.Go(func() {
			result, err := w.Call(t.Context(), &pipeline.Call{
				Request:  abi.Request{Method: abi.CallTool, Name: "wait"},
				Progress: func(abi.Progress) { waiting <- struct{}{} },
			})
			if err != nil || result.Response.IsError {
				t.Errorf("a call in flight: %+v, %v", result, err)
			}
		})
	}
	for range 4 {
		<-waiting
	}
	w.put("hello.wasm", plugin(t, "hello", "default: Hello", "default: Hi"))
	until("replaced", func() bool {
		got, err := w.call("greet", `{"name":"Aki"}`)
		return err == nil && got == "Hi, Aki"
	})
	if err := os.Remove(filepath.Join(w.folder, "hello.wasm")); err != nil {
		t.Fatal(err)
	}
	until("removed", func() bool { return w.tools() == "" })
	callers.Wait()
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

func TestManyPlugins(t *testing.T) {
	t.Parallel()
	const many = 200
	w := newWorld(t, nil)
	for i := range many {
		n := fmt.Sprint(i)
		w.put(n+".wasm", tinyPlugin(t, "p"+n, "one of many"))
	}
	w.load()
	for i := range many {
		w.approve(fmt.Sprint(i)+".wasm", nil)
	}
	w.load()
	if got := len(w.Catalog().View().Tools); got != many {
		t.Errorf("%d tools of %d plugins", got, many)
	}
}

func TestNoFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) { o.Folders = []string{"/no/such/folder"} })
	if err := w.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "/no/such/folder does not exist") {
		t.Errorf("error = %v", err)
	}
}

const fetching = `
name: fetcher
version: 1.0.0
description: Fetches.
tools:
  - {name: fetch, description: Fetches., inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}}
  - {name: clock, description: Tells the time., inputSchema: {type: object}}
permissions:
  http: [{name: server, url: "URL", reason: to fetch}]
`

// TestRecordAndReplay records what a plugin fetches and answers from that with the server gone.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "live ", r.URL.Path)
	}))
	defer server.Close()
	guest := guesttest.Build(t, "dev/kit/guesttest/guests/probe")
	sections := map[string][]byte{abi.ManifestSection: []byte(strings.ReplaceAll(fetching, "URL", server.URL+"/"))}
	shipped := func() []host.Shipped {
		wasm, err := wasmfile.Embed(guest, sections)
		if err != nil {
			t.Fatal(err)
		}
		return []host.Shipped{{File: "fetcher.wasm", Wasm: guesttest.Bytes(wasm)}}
	}
	pinned := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	dir := t.TempDir()
	live := newWorld(t, func(o *host.Options) {
		o.Shipped, o.RecordDir, o.Clock = shipped(), dir, func() time.Time { return pinned }
	})
	live.load()
	arguments := fmt.Sprintf(`{"text":%q}`, server.URL+"/page")
	if got, err := live.call("fetch", arguments); err != nil || got != "200 live /page" {
		t.Fatalf("live: %q, %v", got, err)
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	server.Close()

	recordings, err := os.ReadFile(filepath.Join(dir, "fetcher.recordings.json"))
	if err != nil {
		t.Fatal(err)
	}
	sections[abi.RecordingsSection] = recordings
	mock := newWorld(t, func(o *host.Options) { o.Shipped, o.Mock = shipped(), true })
	mock.load()
	result, err := mock.Call(t.Context(),
		&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "fetch",
			Arguments: json.RawMessage(arguments)}})
	if err != nil || !result.Response.Replayed || result.Response.Content[0].Text != "200 live /page" {
		t.Errorf("replayed: %+v, %v", result, err)
	}
	if got, err := mock.call("clock", `{}`); err != nil || got != pinned.Format(time.RFC3339) {
		t.Errorf("the clock of the recording: %q, %v", got, err)
	}
	if got, _ := mock.call("fetch", fmt.Sprintf(`{"text":%q}`, server.URL+"/other")); !strings.Contains(got,
		"/other") ||
		strings.Contains(got, "200") {
		t.Errorf("a request that was not recorded: %q", got)
	}
}

package devloop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

const helloManifest = `name: hello
version: VERSION
description: Greets.
license: Apache-2.0
tools: [{name: greet, description: Greets., inputSchema: {type: object}}]
`

// desk is a loop on a folder, with what it prints.
type desk struct {
	t   *testing.T
	dir string

	mu   sync.Mutex
	out  bytes.Buffer
	wake chan struct{}
}

func (d *desk) Write(data []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}()
	return d.out.Write(data)
}

// await waits until text has been printed, and forgets what was printed up to then.
func (d *desk) await(text string) {
	d.t.Helper()
	for {
		d.mu.Lock()
		_, rest, found := strings.Cut(d.out.String(), text)
		if found {
			d.out.Reset()
			d.out.WriteString(rest)
		}
		shown := d.out.String()
		d.mu.Unlock()
		if found {
			return
		}
		select {
		case <-d.wake:
		case <-testwait.Context(d.t).Done():
			d.t.Fatalf("no %q in\n%s", text, shown)
		}
	}
}

// save writes a file the way editors do: beside it, then renamed.
func (d *desk) save(name, text string) {
	d.t.Helper()
	temporary := filepath.Join(d.dir, name+"~")
	if err := errors.Join(os.WriteFile(temporary, []byte(text), 0o600),
		os.Rename(temporary, filepath.Join(d.dir, name))); err != nil {
		d.t.Fatal(err)
	}
}

// loop returns a loop on the folder with settings in home, and the number of its questions. Who approves gives the
// folder home/one to the mount workspace.
func (d *desk) loop(home string) (loop *Loop, approvals *int) {
	d.t.Helper()
	source := config.Source{Dir: home, Default: []byte("{}")}
	c, err := config.Load(source)
	if err != nil {
		d.t.Fatal(err)
	}
	settings, err := NewSettings(d.dir, source, c, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	h, err := host.New(&host.Options{Folders: c.Plugins, Consents: c.Consents, Interpret: true,
		Updates: grant.SamePermissions, Logger: NewLogger(d),
		Limits: manifest.Limits{Time: 10 * time.Minute}}) // an interpreted call on a busy machine
	if err != nil {
		d.t.Fatal(err)
	}
	approvals = new(int)
	return &Loop{
		Dir: d.dir, Host: h, Out: d, Settings: settings,
		Approve: func(ctx context.Context, p *host.Status) error {
			*approvals++
			file, err := grant.Load(c.Consents)
			if err != nil {
				return err
			}
			consent := grant.Propose(nil, p.Manifest, p.Digest, "test").Consent
			if len(p.Manifest.Permissions.Files) > 0 {
				consent.SetFolder("workspace", filepath.Join(home, "one"), "")
			}
			return file.Approve(ctx, consent)
		},
		Call: func(ctx context.Context, _, tool string, arguments []byte) (*pipeline.Result, error) {
			return h.Call(ctx, &pipeline.Call{Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal},
				Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: arguments}})
		},
	}, approvals
}

// run runs a loop until stop is called.
func (d *desk) run(loop *Loop) (stop func()) {
	ctx, cancel := context.WithCancel(testwait.Context(d.t))
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			d.t.Errorf("Run: %v", err)
		}
		if err := loop.Host.Close(); err != nil {
			d.t.Error(err)
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	d := &desk{t: t, dir: t.TempDir(), wake: make(chan struct{}, 1)}
	d.save("manifest.yaml", strings.Replace(helloManifest, "VERSION", "1.0.0", 1))
	d.save("main.go", "fine")
	d.save(examplesFile, "- {tool: greet, arguments: {name: Aki}, result: 'Hello, Aki'}\n")
	building := make(chan struct{})
	begun := sync.OnceFunc(func() { close(building) }) // a slow machine may build it again before the last save
	loop, approvals := d.loop(t.TempDir())
	loop.compile = func(ctx context.Context, dir, _ string) ([]byte, error) {
		source, err := os.ReadFile(filepath.Join(dir, "main.go"))
		switch {
		case err != nil:
			return nil, err
		case string(source) == "slow":
			begun()
			<-ctx.Done()
			return nil, ctx.Err()
		case string(source) != "fine":
			return nil, errors.New("main.go:1:1: expected 'package'")
		}
		return gobuild.Plugin(ctx, "../../../dev/kit/guesttest/guests/hello")
	}
	stop := d.run(loop)

	d.await("hello 1.0.0 built in ")
	d.await("greet {\"name\":\"Aki\"}\n  Hello, Aki\n  ok in ")
	d.await("after the save.")

	d.save("main.go", "broken")
	d.await("main.go:1:1: expected 'package'\nThe version before stays in service.")

	d.save("main.go", "slow") // is given up for the next change
	<-building
	d.save(examplesFile, "- {tool: greet, arguments: {name: Bo}, result: 'Hello, Aki'}\n- {tool: gret}\n")
	d.save("manifest.yaml", strings.Replace(helloManifest, "VERSION", "2.0.0", 1))
	d.save("main.go", "fine")
	d.await("hello 2.0.0 built in ")
	d.await("Hello, Bo\n  FAILED in ")
	d.await(`expected "Hello, Aki"`)
	d.await("FAILED in ")
	d.await("2 of the examples failed")

	d.save(examplesFile, "- {tool: greet, argments: {}}\n")
	d.await(`unknown key "argments": did you mean "arguments"?`)

	stop()
	if *approvals != 1 {
		t.Errorf("%d questions for versions that ask for nothing new", *approvals)
	}
}

// TestLoopSettings: changes of the configuration and of the consents are taken up like changed sources, and those that
// the loop makes itself are none. The files lie among the sources.
func TestLoopSettings(t *testing.T) {
	t.Parallel()
	d := &desk{t: t, dir: t.TempDir(), wake: make(chan struct{}, 1)}
	for _, name := range []string{"one", "two"} {
		dir := filepath.Join(d.dir, name)
		if err := errors.Join(os.Mkdir(dir, 0o755),
			os.WriteFile(filepath.Join(dir, "note.txt"), []byte("from "+name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	source := strings.Replace(helloManifest, "]\n",
		", {name: look, description: Looks., inputSchema: {type: object}}]\n", 1) +
		"permissions: {files: [{mount: workspace, access: read-only, reason: To look.}]}\nconfig: {word: {type: string}}\n"
	d.save("manifest.yaml", strings.Replace(source, "VERSION", "1.0.0", 1))
	d.save(examplesFile, "- {tool: greet, arguments: {name: Aki}}\n- {tool: look}\n")
	loop, approvals := d.loop(d.dir)
	built := 0
	loop.compile = func(ctx context.Context, _, _ string) ([]byte, error) {
		built++
		return gobuild.Plugin(ctx, "../../../dev/kit/guesttest/guests/hello")
	}
	stop := d.run(loop)
	rounds := 0
	await := func(texts ...string) {
		t.Helper()
		for _, text := range append(texts, "after the save.") {
			d.await(text)
		}
		rounds++
	}
	configure := func(config string) { d.save("hako.yaml", "plugin: {hello: {config: "+config+"}}\n") }

	await("Hello, Aki", "from one")
	_, others := loop.Settings.files()
	for _, path := range []string{"hako.store", "one"} { // the host and tools write there
		if !slices.Contains(others, filepath.Join(d.dir, path)) {
			t.Errorf("%s is among the sources: %q", path, others)
		}
	}
	configure("{word: Hej}")
	await("hako.yaml changed: plugin.hello.config.word\n", "Hej, Aki")
	d.save("hako.yaml", "# Swedish\nplugin: {hello: {config: {word: Hej}}}\n") // changes nothing

	file := filepath.Base(loop.Settings.Config().Consents)
	consents, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	d.save(file, strings.Replace(string(consents), filepath.Join(d.dir, "one"), filepath.Join(d.dir, "two"), 1))
	await(file+" changed: the consents of hello\n", "from two")
	d.save(file, "nonsense")
	d.await("the consents before stay in force\n")
	d.await("1:1: must be a mapping")
	rounds++
	d.save(file, strings.Replace(string(consents), filepath.Join(d.dir, "one"), filepath.Join(d.dir, "two"), 1))
	await(file+" changed: the consents of hello\n", "from two")

	d.save("hako.yaml", "plugn: {}\n")
	await(`did you mean "plugin"?`, configKept, "Hej, Aki")
	configure("{word: Hallå, end: '!'}")
	d.await("hako.yaml changed: plugin.hello.config.end, plugin.hello.config.word\n")
	d.await(`unknown configuration key "end"`)
	rounds++
	// The version before did not take what this one requires.
	d.save("manifest.yaml", strings.NewReplacer("VERSION", "1.1.0",
		"{word: {type: string}}", "{word: {type: string}, end: {type: string, required: true}}").Replace(source))
	await("hello 1.1.0 built in ", "Hallå, Aki")
	d.save("hako.yaml", "plugin: {hello: {config: {word: Hallå, end: '!'}}}\nhttp: {address: '127.0.0.1:8001'}\n")
	await("hako.yaml changed: only from the next start: http.address\n", "Hallå, Aki")
	stop()
	if *approvals != 1 || built != rounds {
		t.Errorf("%d questions, and %d rounds for %d changes", *approvals, built, rounds)
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	response := &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "three"}},
		StructuredContent: []byte(`{"n": 3, "m": [1]}`)}
	failure := &abi.Response{IsError: true, Content: response.Content}
	for text, test := range map[string]struct {
		response *abi.Response
		want     string
	}{
		`[{tool: t}]`:                                {response, ""},
		`[{tool: t, result: three}]`:                 {response, ""},
		`[{tool: t, result: four}]`:                  {response, `expected "four"`},
		`[{"tool": "t", "result": {"m":[1],"n":3}}]`: {response, ""},
		`[{tool: t, result: {n: 4}}]`:                {response, `expected the structured content {"n":4}, got {"n": 3, "m": [1]}`},
		`[{tool: t, result: [1]}]`:                   {failure, "the tool says that it failed"},
		`[{tool: t, error: hre}]`:                    {failure, ""},
		`[{tool: t, error: four}]`:                   {failure, `expected a failure with "four"`},
		`[{tool: t, error: three}]`:                  {response, `expected a failure with "three"`},
	} {
		list, err := parseExamples([]byte(text))
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v", text, list, err)
			continue
		}
		got := ""
		if err := list[0].check(test.response); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", text, got, test.want)
		}
	}
	for text, want := range map[string]string{
		`tool: t`:                          "must be a list",
		`[{arguments: {}}]`:                "needs a tool",
		`[{tool: t, result: 1, error: a}]`: "has result and error",
		`[{tool: 7}]`:                      "must be text",
	} {
		if _, err := parseExamples([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestScan: what builds and editors write is no source.
func TestScan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"main.go", "sub/b.rs", "dist/x.wasm", "node_modules/a/b.js", ".git/index", "a.go~",
		".a.go.swp", "4913", "hako.store/audit/1", "hako.consents.yaml", "workspace/out.txt"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := scan(dir, map[string]bool{filepath.Join(dir, "hako.store"): true,
		filepath.Join(dir, "hako.consents.yaml"): true, filepath.Join(dir, "workspace"): true})
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := scan(filepath.Join(dir, "missing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

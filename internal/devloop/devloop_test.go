package devloop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/gobuild"
	"github.com/hako-run/hako/internal/testwait"
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

func TestLoop(t *testing.T) {
	t.Parallel()
	d := &desk{t: t, dir: t.TempDir(), wake: make(chan struct{}, 1)}
	consents := filepath.Join(t.TempDir(), "consents.yaml")
	d.save("manifest.yaml", strings.Replace(helloManifest, "VERSION", "1.0.0", 1))
	d.save("main.go", "fine")
	d.save(ExamplesFile, "- {tool: greet, arguments: {name: Aki}, result: 'Hello, Aki'}\n")
	if err := os.Mkdir(Output(d.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(&host.Options{Folders: []string{Output(d.dir)}, Consents: consents, Interpret: true,
		Updates: grant.SamePermissions, Logger: NewLogger(d)})
	if err != nil {
		t.Fatal(err)
	}
	building := make(chan struct{})
	begun := sync.OnceFunc(func() { close(building) }) // a slow machine may build it again before the last save
	approvals := 0
	loop := &Loop{
		Dir: d.dir, Host: h, Out: d,
		Approve: func(ctx context.Context, p *host.Status) error {
			approvals++
			file, err := grant.Load(consents)
			if err != nil {
				return err
			}
			return file.Approve(ctx, grant.Propose(nil, p.Manifest, p.Digest, "test").Consent)
		},
		Call: func(ctx context.Context, _, tool string, arguments []byte) (*pipeline.Result, error) {
			return h.Call(ctx, &pipeline.Call{Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal},
				Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: arguments}})
		},
		compile: func(ctx context.Context, dir, _ string) ([]byte, error) {
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
			return gobuild.Plugin(ctx, "../../host/internal/guesttest/guests/hello")
		},
	}
	ctx, cancel := context.WithCancel(testwait.Context(t))
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()

	d.await("hello 1.0.0 built in ")
	d.await("greet {\"name\":\"Aki\"}\n  Hello, Aki\n  ok in ")
	d.await("after the save.")

	d.save("main.go", "broken")
	d.await("main.go:1:1: expected 'package'\nThe version before stays in service.")

	d.save("main.go", "slow") // is given up for the next change
	<-building
	d.save(ExamplesFile, "- {tool: greet, arguments: {name: Bo}, result: 'Hello, Aki'}\n- {tool: gret}\n")
	d.save("manifest.yaml", strings.Replace(helloManifest, "VERSION", "2.0.0", 1))
	d.save("main.go", "fine")
	d.await("hello 2.0.0 built in ")
	d.await("Hello, Bo\n  FAILED in ")
	d.await(`expected "Hello, Aki"`)
	d.await("FAILED in ")
	d.await("2 of the examples failed")

	d.save(ExamplesFile, "- {tool: greet, argments: {}}\n")
	d.await(`unknown key "argments": did you mean "arguments"?`)

	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if approvals != 1 {
		t.Errorf("%d questions for versions that ask for nothing new", approvals)
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
		".a.go.swp", "4913"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := scan(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := scan(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

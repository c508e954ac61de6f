package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/pdk/abi"
)

const offeredTools = `
name: test
version: 1.0.0
description: d
tools:
  - {name: echo, description: d, inputSchema: {type: object, properties: {n: {type: integer}}, additionalProperties: false}}
  - {name: look, description: d, inputSchema: {type: object}, annotations: {readOnlyHint: true}}
  - {name: put, description: d, inputSchema: {type: object}, annotations: {idempotentHint: true}}
  - {name: people, description: d, inputSchema: {type: object, properties: {場所: {type: string}}}}
`

// key is accepted by the fake.
const key = "secret-key"

// world is a fake of the API, a store, and tools, on which runners run.
type world struct {
	fake    *managedagents.Server
	url     string
	store   *store.Store
	catalog *catalog.Catalog
	// governance is the pipeline's.
	governance pipeline.Governance
	// change may change what newRunner makes.
	change func(*Options, *timing)

	mu sync.Mutex
	// run is the behavior of the tools, made the calls that reached one. mu guards both.
	run  func(ctx context.Context, r *abi.Request) (*abi.Response, error)
	made []string
}

// Call is the backend.
func (w *world) Call(ctx context.Context, i *catalog.Invocation) (*abi.Response, error) {
	w.mu.Lock()
	w.made = append(w.made, i.Request.Name+" "+string(i.Request.Arguments))
	run := w.run
	w.mu.Unlock()
	if run == nil {
		return text(i.Request.Name + " " + string(i.Request.Arguments)), nil
	}
	return run(ctx, i.Request)
}

func text(s string) *abi.Response {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: s}}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{fake: &managedagents.Server{Key: key}, catalog: new(catalog.Catalog)}
	server := httptest.NewServer(w.fake)
	t.Cleanup(server.Close)
	w.url = server.URL
	m, err := manifest.Parse([]byte(offeredTools))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.catalog.Put(catalog.Source{Name: "test", Backend: w}, m); err != nil {
		t.Fatal(err)
	}
	if w.store, err = drivers.Open(t.Context(), t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

func (w *world) newRunner(t *testing.T, spec Spec) *Runner {
	t.Helper()
	if spec.Key.IsZero() {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		spec.Key = secret.Source{File: path}
	}
	spec.BaseURL = w.url
	p := pipeline.New(w.catalog, &pipeline.Options{Governance: w.governance})
	options := &Options{
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Spec:   spec, Store: w.store, Call: p.Call,
		Tools: func(caller pipeline.Caller) (list []*catalog.Tool) {
			for _, tool := range w.catalog.View().Tools {
				if p.Visible(caller, tool) {
					list = append(list, tool)
				}
			}
			return list
		},
		Known: func(name string) bool { _, ok := w.catalog.View().Tool(name); return ok },
	}
	brisk := timing{
		discover: 20 * time.Millisecond, silence: time.Minute, tick: 10 * time.Millisecond, rest: time.Minute,
		retry:   5 * time.Millisecond,
		inspect: time.Hour, later: 20 * time.Millisecond,
	}
	if w.change != nil {
		w.change(options, &brisk)
	}
	r, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	r.timing = brisk
	return r
}

// start runs a runner until stop is called, which returns what Run does. It is called at the latest when the test ends.
func start(t *testing.T, r *Runner) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := r.Run(ctx)
		t.Log("Run ended:", err)
		done <- err
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// result is a result that an agent received.
type result struct {
	text    string
	isError bool
	images  int
}

// wait waits until the agent has results for all the calls, and returns them in their order.
func (w *world) wait(t *testing.T, session string, calls ...string) []result {
	t.Helper()
	results := make([]result, len(calls))
	w.until(t, session, "results", func(events []managedagents.Event) bool {
		found := 0
		for _, e := range events {
			if i := slices.Index(calls, fmt.Sprint(e["custom_tool_use_id"])); i >= 0 && e["type"] == typeResult {
				results[i] = readResult(e)
				found++
			}
		}
		return found >= len(calls)
	})
	return results
}

func readResult(e managedagents.Event) (r result) {
	r.isError, _ = e["is_error"].(bool)
	blocks, _ := e["content"].([]any)
	for _, b := range blocks {
		block := b.(map[string]any)
		if block["type"] == "image" {
			r.images++
		}
		if s, ok := block["text"].(string); ok {
			r.text += s
		}
	}
	return r
}

// until waits until the events of a session are as wanted.
func (w *world) until(t *testing.T, session, what string, wanted func([]managedagents.Event) bool) {
	t.Helper()
	late := testwait.Context(t).Done()
	for {
		events, changed := w.fake.Events(session)
		if wanted(events) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("there are no %s: %v", what, events)
		}
	}
}

// eventually waits until something holds that nothing announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !testwait.Until(t, holds) {
		t.Fatalf("not %s", what)
	}
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}

func (w *world) does(run func(ctx context.Context, r *abi.Request) (*abi.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run = run
}

// count counts the results of each call.
func (w *world) count(session string) map[string]int {
	events, _ := w.fake.Events(session)
	counts := map[string]int{}
	for _, e := range events {
		if e["type"] == typeResult {
			counts[fmt.Sprint(e["custom_tool_use_id"])]++
		}
	}
	return counts
}

type object = map[string]any

func echo(n int) managedagents.Call {
	return managedagents.Call{Tool: "echo", Input: object{"n": n}}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, follow := range []string{FollowStream, FollowPoll} {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, found %t", follow, found), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				session := w.fake.NewSession()
				spec := Spec{Follow: follow, Poll: 10 * time.Millisecond, Sessions: []string{session}}
				if found {
					spec.Sessions, spec.Agents = nil, []string{managedagents.DefaultAgent}
				}
				before := w.fake.Call(session, "", echo(1))
				start(t, w.newRunner(t, spec))
				if got := w.wait(t, session, before...); got[0] != (result{text: `echo {"n":1}`}) {
					t.Errorf("the call from before the start got %+v", got)
				}
				after := w.fake.Call(session, "", echo(2), managedagents.Call{Tool: "people", Input: object{}},
					managedagents.Call{Tool: "echo", Input: object{"n": "x"}})
				got := w.wait(t, session, after...)
				if got[0] != (result{text: `echo {"n":2}`}) || got[1].text != `people {}` {
					t.Errorf("got %+v", got)
				}
				if !got[2].isError || !strings.Contains(got[2].text, "the arguments of echo are not valid") {
					t.Errorf("malformed arguments got %+v", got[2])
				}
			})
		}
	}
}

// TestNamesOfArguments: an agent calls a tool with the names in its definition, and the tool gets its own.
func TestNamesOfArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	var schema struct{ Properties map[string]any }
	for _, d := range Definitions(w.catalog.View().Tools, "en", nil) {
		if d.Name == "people" {
			_ = json.Unmarshal(d.InputSchema, &schema)
		}
	}
	if len(schema.Properties) != 1 || schema.Properties["場所"] != nil {
		t.Fatalf("the schema has %v", schema.Properties)
	}
	for name := range schema.Properties {
		got := w.wait(t, session, w.fake.Call(session, "", managedagents.Call{Tool: "people", Input: object{name: "東京"}})...)
		if got[0].text != `people {"場所":"東京"}` {
			t.Errorf("got %+v", got)
		}
	}
}

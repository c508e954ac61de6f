package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/manifest"
)

// reconfigure puts options in force, and returns the error of their check.
func (w *world) reconfigure(change func(*host.Options)) error {
	w.t.Helper()
	options := &host.Options{Folders: []string{w.folder}, Consents: w.consents, Settings: map[string]host.Settings{},
		Limits: manifest.Limits{Time: patience}}
	change(options)
	put, err := w.Reconfigure(options)
	if err == nil {
		if err := put(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return err
}

// TestReconfigure changes what an operator wants of plugins while their tools are called: every call is answered, under
// the old settings or the new.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) { o.Limits.Rate = 1_000_000 })
	w.put("hello.wasm", plugin(t, "hello"))
	w.put("other.wasm", plugin(t, "other"))
	w.approve("hello.wasm", nil)
	w.load()
	w.greets("greet", "Hello, Aki")
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for ctx.Err() == nil {
				if got, err := w.call("greet", `{"name":"Aki"}`); err != nil || !strings.HasSuffix(got, ", Aki") {
					t.Errorf("%q, %v", got, err)
					return
				}
			}
		})
	}
	for _, word := range []string{"Ciao", "Hi", "Ahoy"} {
		if err := w.reconfigure(func(o *host.Options) {
			o.Limits.Rate = 1_000_000
			o.Settings["hello"] = host.Settings{Config: map[string]any{"word": word}}
		}); err != nil {
			t.Error(err)
		}
		w.greets("greet", word+", Aki")
	}
	stop()
	calls.Wait()
}

// TestReconfigureEverything: each of the options takes effect, and what is wrong changes nothing.
func TestReconfigureEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("hello.wasm", plugin(t, "hello"))
	w.approve("hello.wasm", nil)
	w.load()
	for what, change := range map[string]func(*host.Options){
		"wordd": func(o *host.Options) { o.Settings["hello"] = host.Settings{Config: map[string]any{"wordd": "x"}} },
		"tenants.acme": func(o *host.Options) {
			o.Tenants = map[string]host.Tenant{"acme": {Config: map[string]map[string]any{"hello": {"word": 5}}}}
		},
		"plugin folder": func(o *host.Options) { o.Folders = []string{filepath.Join(w.folder, "none")} },
		`HTTP permission "api"`: func(o *host.Options) {
			o.Settings["hello"] = host.Settings{HTTP: map[string]httpbroker.RuleOptions{"api": {}}}
		},
	} {
		if err := w.reconfigure(change); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
		w.greets("greet", "Hello, Aki")
	}
	if err := w.reconfigure(func(o *host.Options) {
		o.Settings["hello"] = host.Settings{Prefix: "x_"}
		o.Limits = manifest.Limits{Output: 10}
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.call("x_greet", `{"name":"a long name, which is longer"}`); err != nil ||
		!strings.Contains(got, "10 bytes") {
		t.Errorf("%q, %v", got, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "plugins")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.reconfigure(func(o *host.Options) {
		o.Folders = []string{elsewhere}
		o.Shipped = []host.Shipped{{File: "shipped.wasm", Wasm: guesttest.Bytes(plugin(t, "shipped"))}}
	}); err != nil {
		t.Fatal(err)
	}
	w.greets("greet", "Hello, Aki")
	if list := w.Plugins(); len(list) != 1 || list[0].Name != "shipped" {
		t.Errorf("plugins are %+v", list)
	}
	if err := w.reconfigure(func(o *host.Options) { o.Consents = filepath.Join(elsewhere, "other.yaml") }); err != nil {
		t.Fatal(err)
	}
	w.expect("hello.wasm", host.Pending, "approve")
}

// TestReconfigureLeavesOthersAlone: a plugin for which nothing changes is not made anew.
func TestReconfigureLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("a.wasm", plugin(t, "a"))
	w.approve("a.wasm", nil)
	w.load()
	before := w.Service("a")
	if err := w.reconfigure(
		func(o *host.Options) { o.Settings["b"] = host.Settings{Prefix: "y_"}; o.Locale = "ja" }); err != nil {
		t.Fatal(err)
	}
	if w.Service("a") != before {
		t.Error("a is another one")
	}
	if err := w.reconfigure(func(o *host.Options) { o.Settings["a"] = host.Settings{Prefix: "y_"} }); err != nil {
		t.Fatal(err)
	}
	if w.Service("a") == before {
		t.Error("a is the same")
	}
}

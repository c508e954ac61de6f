package host_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// fetcher is a plugin that may get what is under base.
func fetcher(t *testing.T, base string) host.Shipped {
	t.Helper()
	text := strings.ReplaceAll(`
name: fetching
version: 1.0.0
tools: [{name: fetch, description: Fetches., inputSchema: {type: object}}]
permissions: {http: [{name: api, url: "BASE", reason: r}]}
`, "BASE", base)
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/probe"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return host.Shipped{File: "fetching.wasm", Wasm: guesttest.Bytes(wasm)}
}

func fetch(t *testing.T, w *world, url string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"text": url})
	if err != nil {
		t.Fatal(err)
	}
	result, err := w.Call(t.Context(),
		&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "fetch", Arguments: arguments}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Response.Content[0].Text
}

// requests is an Observer of HTTP requests.
type requests struct {
	mu   sync.Mutex
	seen []httpbroker.Observation
}

func (*requests) CallStarted(*pipeline.Running) {}
func (*requests) CallEnded(pipeline.Record)     {}
func (r *requests) RequestEnded(plugin string, o httpbroker.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if plugin == "fetching" {
		r.seen = append(r.seen, o)
	}
}

func TestRetriesAreSet(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	for retries, want := range map[int]int32{-1: 1, 1: 2} {
		var observer requests
		w := newWorld(t, func(o *host.Options) {
			o.Shipped = []host.Shipped{fetcher(t, server.URL)}
			o.Settings = map[string]host.Settings{
				"fetching": {HTTP: map[string]httpbroker.RuleOptions{"api": {Retries: retries}}}}
			o.Observer = &observer
		})
		w.load()
		tries.Store(0)
		if got := fetch(t, w, server.URL); !strings.HasPrefix(got, "503") || tries.Load() != want {
			t.Errorf("%d retries: %s after %d tries, want %d", retries, got, tries.Load(), want)
		}
		if len(observer.seen) != 1 || observer.seen[0].Rule != "api" || observer.seen[0].Tries != int(want) {
			t.Errorf("observed %+v", observer.seen)
		}
	}
}

func TestRequestsGoThroughTheProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("proxied " + r.URL.String()))
	}))
	t.Cleanup(proxy.Close)
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) {
		o.Shipped, o.Proxy = []host.Shipped{fetcher(t, "http://api.example.com/v1")}, through
	})
	w.load()
	if got := fetch(t, w, "http://api.example.com/v1/a"); got != "200 proxied http://api.example.com/v1/a" {
		t.Errorf("got %s", got)
	}
}

func TestSettingsOfUnknownPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{fetcher(t, "https://api.example.com")}
		o.Settings = map[string]host.Settings{"fetching": {HTTP: map[string]httpbroker.RuleOptions{"apo": {}}}}
	})
	w.load()
	if s := w.Plugins()[0]; s.State != host.Broken ||
		!strings.Contains(s.Reason,
			`plugin.fetching.http in hako.yaml: unknown HTTP permission "apo": did you mean "api"?`) {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// programCalls is the number of calls of the program whose time is compared with that of the calls.
const programCalls = 30

// code measures programs of run_code: what they add to the time of the calls that they make, the rate of those calls,
// and searching a catalog of 10,000 tools. Policy, quotas, audit and metrics are on.
func (r *results) code(t *testing.T) {
	h := codeHost(t)
	call := func(name string, arguments any) time.Duration {
		data, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		return median(t, func() error { return callTool(t.Context(), h, name, data) })
	}
	program := func(code string) time.Duration { return call("run_code", map[string]string{"code": code}) }

	for h.Plugins()[0].Interpreted { // until its code is compiled
		program("1")
	}
	direct := call("quick", struct{}{})
	empty := program("1")
	sequential := program(fmt.Sprintf(`for (let i = 0; i < %d; i++) await tools.quick({})`, programCalls))
	atOnce := program(fmt.Sprintf(`await Promise.all(Array.from({length: %d}, () => tools.quick({})))`, programCalls))
	r.add(t, "code_empty_us", us(empty), "us")
	r.add(t, "code_direct_call_us", us(direct), "us")
	r.add(t, "code_overhead_ms", ms(sequential-programCalls*direct), "ms")
	r.add(t, "code_overhead_parallel_ms", ms(atOnce-programCalls*direct), "ms")
	r.add(t, "code_parallel_50ms_ms", ms(least(t, 10, func() error {
		return callTool(t.Context(), h, "run_code",
			json.RawMessage(`{"code":"await Promise.all([1,2,3,4,5,6,7,8].map(() => tools.slow({})))"}`))
	})), "ms")
	before := runtime.GOMAXPROCS(1)
	one := program(fmt.Sprintf(`for (let i = 0; i < %d; i++) await tools.quick({})`, programCalls))
	runtime.GOMAXPROCS(before)
	r.add(t, "code_calls_per_core_second", programCalls/one.Seconds(), "calls/s")

	for i := range 10_000 / toolsPerSource {
		putTools(t, h.Catalog(), i)
	}
	search := json.RawMessage(`{"query":"returns the text of source 777 in 東京"}`)
	if err := callTool(t.Context(), h, "find_tools", search); err != nil { // makes the index
		t.Fatal(err)
	}
	r.add(t, "code_search_10k_ms", ms(least(t, 10, func() error {
		return callTool(t.Context(), h, "find_tools", search)
	})), "ms")
}

// callTool calls a tool and returns the text of a failure as an error.
func callTool(ctx context.Context, h *host.Host, name string, arguments json.RawMessage) error {
	result, err := h.Call(ctx, &pipeline.Call{
		Caller:  pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki"},
		Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: arguments},
	})
	if err == nil && result.Response.IsError {
		err = fmt.Errorf("%s: %s", name, result.Response.Content[0].Text)
	}
	return err
}

// codeHost returns a host with the plugin code, a tool quick, which does nothing, and a tool slow, which takes 50 ms.
func codeHost(t *testing.T) *host.Host {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "plugins", "code", "code.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), "manifests", "code.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: text}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "code.wasm"), wasm, 0o644); err != nil {
		t.Fatal(err)
	}
	consents := filepath.Join(dir, "consents.yaml")
	approveIn(t, consents, wasm)
	h, err := host.New(&host.Options{Folders: []string{dir}, Consents: consents, CacheDir: guesttest.CacheDir(t),
		Limits: manifest.Limits{Rate: 100_000_000}, Observer: metrics.New("bench"), Governance: governance(t, 100)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, backend := range map[string]catalog.Backend{"quick": nothing{}, "slow": sleeper{}} {
		m, err := manifest.Parse(fmt.Appendf(nil, "name: %s\nversion: 1.0.0\ntools: [{name: %s, description: d, "+
			"inputSchema: {type: object}}]\n", name, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Catalog().Put(catalog.Source{Name: name, Backend: backend}, m); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// sleeper is a tool that takes 50 ms.
type sleeper struct{}

func (sleeper) Call(context.Context, *catalog.Invocation) (*abi.Response, error) {
	time.Sleep(50 * time.Millisecond)
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "done"}}}, nil
}

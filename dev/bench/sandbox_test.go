package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// noHTTP is linked into the guest probe, which imports the module.
var noHTTP = broker.Module{Name: abi.HTTPModule, Functions: []broker.Function{
	function("request", 4), function("read", 3), {Name: "close", Params: []broker.Type{broker.I32}, Do: refuse},
}}

func function(name string, params int) broker.Function {
	result := broker.I32
	f := broker.Function{Name: name, Result: &result, Do: refuse}
	for range params {
		f.Params = append(f.Params, broker.I32)
	}
	return f
}

func refuse(context.Context, *broker.Call, []uint64) uint64 { return 0 }

// benchLimits are limits that do not affect the measurements.
var benchLimits = manifest.Limits{Rate: 100_000_000, Memory: 128 << 20, Input: 4 << 20, Output: 4 << 20,
	Concurrency: 64, Queue: 10_000, Time: 10 * time.Minute}

func probeSpec(t *testing.T, state manifest.State) sandbox.Spec {
	t.Helper()
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/probe")
	return sandbox.Spec{
		Name: "probe", Wasm: func() ([]byte, error) { return wasm, nil }, Modules: []broker.Module{noHTTP},
		State: state, Limits: benchLimits,
	}
}

// probe loads the guest probe, compiled.
func probe(t *testing.T, state manifest.State) *sandbox.Plugin {
	t.Helper()
	return loadSpec(t, probeSpec(t, state))
}

func loadSpec(t *testing.T, spec sandbox.Spec) *sandbox.Plugin {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return plugin
}

func tool(name, arguments string) *abi.Request {
	return &abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}
}

// cost is the average cost of a call.
type cost struct{ latency, cpu time.Duration }

func (c cost) least(other cost) cost {
	return cost{min(c.latency, other.latency), min(c.cpu, other.cpu)}
}

// measure calls a tool repeatedly and returns the median latency and the CPU time per call, including resets.
func measure(t *testing.T, plugin *sandbox.Plugin, request *abi.Request) cost {
	t.Helper()
	before := cpuTime(t)
	latency := median(t, func() error {
		_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request})
		return err
	})
	return cost{latency, (cpuTime(t) - before) / samples}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// sandbox compares a clean call with one on a reused instance, and measures how late the worst hostile guest is
// stopped.
//
// The fastest of several instances counts. wazero allocates the native stack of an instance anywhere in Go's heap. If its
// addresses agree in their lowest twelve bits with those of the guest's variables in its memory, the processor takes
// loads for dependent on stores, and a guest that handles JSON takes up to twice as long, whether it is clean or not.
func (r *results) sandbox(t *testing.T) {
	const instances = 7
	var clean, reused []*sandbox.Plugin
	for range instances {
		clean, reused = append(clean, probe(t, manifest.StateCall)), append(reused, probe(t, manifest.StateShared))
	}
	for _, test := range []struct {
		key     string
		request *abi.Request
	}{
		{"clean_small", tool("echo", `{"text":"hello"}`)},
		{"clean_json", tool("structured", `{"text":"`+strings.Repeat("hello ", 4000)+`"}`)},
		{"clean_compute", tool("recurse", `{"n":20}`)},
	} {
		c, u := cost{time.Hour, time.Hour}, cost{time.Hour, time.Hour}
		for i := range instances { // alternately, because the machine's load changes
			c, u = c.least(measure(t, clean[i], test.request)), u.least(measure(t, reused[i], test.request))
		}
		latency, cpu := float64(c.latency)/float64(u.latency), float64(c.cpu)/float64(u.cpu)
		r.add(t, test.key+"_us", us(c.latency), "us")
		r.add(t, test.key+"_reused_us", us(u.latency), "us")
		r.add(t, test.key+"_latency_ratio", latency, "clean/reused")
		r.add(t, test.key+"_cpu_ratio", cpu, "clean/reused")
		if test.key == "clean_json" {
			r.add(t, "clean_latency_ratio", latency, "clean/reused")
			r.add(t, "clean_cpu_ratio", cpu, "clean/reused")
		}
	}
	r.deadline(t, clean[0])
	r.heartbeat(t, clean[0])
}

// deadline measures how late the worst hostile guest is stopped. The median of three tries counts.
func (r *results) deadline(t *testing.T, plugin *sandbox.Plugin) {
	var worst time.Duration
	for name, arguments := range map[string]string{
		"loop": `{}`, "recurse": `{"n":60}`, "host_flood": `{}`, "log_flood": `{"n":100000000}`,
		"sleep": `{"n":60000}`, "poll": `{}`,
		"clear_flood": `{}`, "random_flood": `{}`, "clock_flood": `{}`,
	} {
		worst = max(worst, overshoot(t, plugin, name, tool(name, arguments)))
	}
	for name, wasm := range guesttest.Hostile() {
		read := func() ([]byte, error) { return wasm, nil }
		hostile := loadSpec(t, sandbox.Spec{Name: "hostile", Wasm: read, Limits: benchLimits})
		worst = max(worst, overshoot(t, hostile, name, tool("any", "{}")))
	}
	r.add(t, "deadline_overshoot_ms", ms(worst), "ms")
}

// overshoot returns the time by which a call exceeds its limit.
func overshoot(t *testing.T, plugin *sandbox.Plugin, name string, request *abi.Request) time.Duration {
	t.Helper()
	const limit = 150 * time.Millisecond
	var times []time.Duration
	for range 3 {
		start := time.Now()
		_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request, Limits: manifest.Limits{Time: limit}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		times = append(times, time.Since(start)-limit)
	}
	slices.Sort(times)
	t.Logf("%s is stopped %v late", name, times[1])
	return times[1]
}

// heartbeat measures the longest pause of the process while guests spin on every processor and garbage is collected
// continuously. A guest that does not yield would stop the process until its deadline.
func (r *results) heartbeat(t *testing.T, plugin *sandbox.Plugin) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			// ends with ctx
			_, _ = plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "loop"},
				Limits: manifest.Limits{CPU: 1 << 20}})
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
		}
	})
	var worst time.Duration
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
		now := time.Now()
		worst = max(worst, now.Sub(last))
		last = now
	}
	group.Wait()
	r.add(t, "heartbeat_gap_ms", ms(worst), "ms")
}

// cold measures the first call of an approved plugin with empty caches.
func (r *results) cold(t *testing.T) {
	dir := t.TempDir()
	folder, consents := filepath.Join(dir, "plugins"), filepath.Join(dir, "consents.yaml")
	wasm := echoPlugin(t, "echo", "echo")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "echo.wasm"),
		wasm, 0o644)); err != nil {
		t.Fatal(err)
	}
	approveIn(t, consents, wasm)
	start := time.Now()
	h, err := host.New(&host.Options{Folders: []string{folder}, Consents: consents,
		CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := h.Call(t.Context(), &pipeline.Call{Request: *tool("echo", `{"text":"hello"}`)})
	if err != nil || result.Outcome != pipeline.OK {
		t.Fatalf("%+v, %v", result, err)
	}
	r.add(t, "first_call_cold_ms", ms(time.Since(start)), "ms")
}

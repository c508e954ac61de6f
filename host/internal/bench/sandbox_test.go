package bench

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/manifest"
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

func probe(t *testing.T) *sandbox.Plugin {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	wasm := guesttest.Build(t, "host/internal/guesttest/guests/probe")
	plugin := engine.Load(sandbox.Spec{
		Name: "probe", Wasm: func() ([]byte, error) { return wasm, nil }, Modules: []broker.Module{noHTTP},
		Limits: manifest.Limits{Rate: 100_000_000},
	})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return plugin
}

// sandbox measures a clean call, and how late the worst hostile guest is stopped.
func (r *results) sandbox(t *testing.T) {
	plugin := probe(t)
	request := &abi.Request{Method: abi.CallTool, Name: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)}
	took := median(t, func() error {
		_, err := plugin.Call(t.Context(), request, manifest.Limits{}, nil)
		return err
	})
	r.add(t, "clean_call_us", float64(took)/float64(time.Microsecond), "us")
	const limit = 200 * time.Millisecond
	var worst time.Duration
	for tool, arguments := range map[string]string{
		"loop": `{}`, "recurse": `{"n":60}`, "host_flood": `{}`, "log_flood": `{"n":100000000}`, "sleep": `{"n":60000}`, "poll": `{}`,
		"clear_flood": `{}`, "random_flood": `{}`, "clock_flood": `{}`,
	} {
		start := time.Now()
		_, err := plugin.Call(t.Context(), &abi.Request{Method: abi.CallTool, Name: tool, Arguments: json.RawMessage(arguments)},
			manifest.Limits{Time: limit}, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", tool, err)
		}
		worst = max(worst, time.Since(start)-limit)
	}
	r.add(t, "deadline_overshoot_ms", ms(worst), "ms")
}

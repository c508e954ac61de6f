package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// way is one way of calling a function. prepare returns the function for one caller; callers do not share it.
type way struct {
	name    string
	prepare func(t *testing.T) func(request *abi.Request) error
}

// work are the called functions: a tool of the guests, and the same in Go.
var work = []struct {
	key     string
	request *abi.Request
	native  func(arguments json.RawMessage) (*abi.Response, error)
}{
	{"small", tool("echo", `{"text":"hello"}`), nativeEcho},
	{"compute", tool("recurse", `{"n":22}`), nativeRecurse},
	{"mib", tool("echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`), nativeEcho},
}

func nativeEcho(arguments json.RawMessage) (*abi.Response, error) {
	var in echo
	err := json.Unmarshal(arguments, &in)
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: in.Text}}}, err
}

func nativeRecurse(arguments json.RawMessage) (*abi.Response, error) {
	var in struct{ N int }
	err := json.Unmarshal(arguments, &in)
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: strconv.Itoa(fib(in.N))}}}, err
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// waysOf returns the ways, in the expected order from fast to slow.
func waysOf(t *testing.T) []way {
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/extism")
	fresh := probeSpec(t, manifest.StateCall)
	fresh.Adapter = freshly{}
	return []way{
		{"native", func(*testing.T) func(*abi.Request) error { return callNative }},
		{"reused", through(t, probeSpec(t, manifest.StateShared))},
		{"clean", through(t, probeSpec(t, manifest.StateCall))},
		{"fresh", through(t, fresh)},
		{"extism", through(t, extismSpec(t, wasm))},
		{"extism_sdk", inSDK(t, wasm)},
	}
}

func callNative(request *abi.Request) error {
	for _, w := range work {
		if w.request == request {
			_, err := w.native(request.Arguments)
			return err
		}
	}
	return errors.New("no such function")
}

// through calls a plugin in the sandbox.
func through(t *testing.T, spec sandbox.Spec) func(*testing.T) func(*abi.Request) error {
	t.Helper()
	plugin := loadSpec(t, spec)
	return func(t *testing.T) func(*abi.Request) error {
		return func(request *abi.Request) error {
			response, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request})
			if err == nil && response.IsError {
				err = errors.New(response.Content[0].Text)
			}
			return err
		}
	}
}

// freshly uses the native ABI with a new instance for each call.
type freshly struct{}

func (freshly) Start(ctx context.Context, guest *sandbox.Guest) error {
	guest.DisableCopies("that is what is measured")
	_, err := guest.Invoke(ctx, "_initialize")
	return err
}

func (freshly) Serve(ctx context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	payload, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	_, err = guest.Invoke(ctx, abi.Entry, guest.Host().Give(payload))
	return new(abi.Response), err
}

func extismSpec(t *testing.T, wasm []byte) sandbox.Spec {
	t.Helper()
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := extism.New(module, &extism.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Name: "guest", Wasm: func() ([]byte, error) { return wasm, nil }, Limits: benchLimits}
	adapter.Equip(&spec)
	return spec
}

// inSDK calls the same guest with the SDK of Extism, which by default reuses an instance: one for each caller.
func inSDK(t *testing.T, wasm []byte) func(*testing.T) func(*abi.Request) error {
	t.Helper()
	cache, err := wazero.NewCompilationCacheWithDir(guesttest.CacheDir(t))
	if err != nil {
		t.Fatal(err)
	}
	var functions []sdk.HostFunction // the functions of hyper-mcp, which the guest imports but does not call
	for name, types := range map[string][2][]sdk.ValueType{
		"create_elicitation": {{sdk.ValueTypeI64}, {sdk.ValueTypeI64}},
		"create_message":     {{sdk.ValueTypeI64}, {sdk.ValueTypeI64}},
		"list_roots":         {{}, {sdk.ValueTypeI64}}, "notify_logging_message": {{sdk.ValueTypeI64}, {}},
		"notify_progress":          {{sdk.ValueTypeI64}, {}},
		"notify_tool_list_changed": {{}, {}}, "notify_resource_updated": {{sdk.ValueTypeI64}, {}},
	} {
		functions = append(functions, sdk.NewHostFunctionWithStack(name,
			func(context.Context, *sdk.CurrentPlugin, []uint64) {}, types[0], types[1]))
	}
	config := sdk.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)}
	compiled, err := sdk.NewCompiledPlugin(t.Context(), sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: wasm}}},
		config, functions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(compiled.Close(context.Background()), cache.Close(context.Background())) })
	return func(t *testing.T) func(*abi.Request) error {
		instance, err := compiled.Instance(t.Context(), sdk.PluginInstanceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = instance.Close(context.Background()) })
		return func(request *abi.Request) error {
			input, err := json.Marshal(map[string]any{"params": map[string]any{"name": request.Name,
				"arguments": request.Arguments}})
			if err != nil {
				return err
			}
			code, output, err := instance.Call("call", input)
			if err != nil || code != 0 {
				return fmt.Errorf("code %d, %w", code, err)
			}
			return json.Unmarshal(output, new(abi.Response))
		}
	}
}

// waysDuration is the duration of each measurement.
const waysDuration = 400 * time.Millisecond

// ways measures every way for each work, with several numbers of callers: the median latency, and the CPU time per call
// including background work.
func (r *results) ways(t *testing.T) {
	all := waysOf(t)
	for _, w := range work {
		for _, callers := range []int{1, 8, 64} {
			for _, way := range all {
				calls := make([]func(*abi.Request) error, callers)
				for i := range calls {
					calls[i] = way.prepare(t)
				}
				together(t, calls, w.request, waysDuration/4)
				c := together(t, calls, w.request, waysDuration)
				key := fmt.Sprintf("ways_%s_%s_c%d", w.key, way.name, callers)
				r.add(t, key+"_us", us(c.latency), "us")
				r.add(t, key+"_cpu_us", us(c.cpu), "us")
			}
		}
	}
}

// together runs the callers concurrently for a duration.
func together(t *testing.T, calls []func(*abi.Request) error, request *abi.Request, duration time.Duration) cost {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var group sync.WaitGroup
	before, begin := cpuTime(t), time.Now()
	for _, call := range calls {
		group.Go(func() {
			var own []time.Duration
			for len(own) == 0 || time.Since(begin) < duration {
				start := time.Now()
				if err := call(request); err != nil {
					t.Error(err)
					return
				}
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	group.Wait()
	if len(all) == 0 {
		t.FailNow()
	}
	slices.Sort(all)
	return cost{all[len(all)/2], (cpuTime(t) - before) / time.Duration(len(all))}
}

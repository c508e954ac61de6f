package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// forgetful is an Adapter that calls an export and drops its result.
type forgetful struct{ exporting }

func (forgetful) Serve(ctx context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	_, err := guest.Call(ctx, request.Name, nil)
	return &abi.Response{}, err
}

// loadAliased loads a component of guesttest.AliasedLists.
func loadAliased(t *testing.T, engine *sandbox.Engine, wasm []byte, limits manifest.Limits,
	sink broker.InterfaceFunc) *sandbox.Plugin {
	t.Helper()
	limits.Time = patience
	plugin := engine.Load(sandbox.Spec{Name: "aliased", Wasm: guesttest.Bytes(wasm), Adapter: forgetful{}, Limits: limits,
		Interfaces: []broker.Interface{{Name: guesttest.Sink,
			Functions: map[string]broker.InterfaceFunc{guesttest.Pass: sink}}}})
	t.Cleanup(func() {
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return plugin
}

// TestHostileLists calls components with lists whose elements all point at the same memory, as results and as arguments
// of the host. Each would take hundreds of megabytes or gigabytes, and ends at a limit of the plugin before that. It does
// not run beside other tests, because it measures what the process allocates.
func TestHostileLists(t *testing.T) {
	limits := manifest.Limits{Memory: 16 << 20, Output: 1 << 20, QueueWait: time.Millisecond}
	for name, test := range map[string]struct {
		element       guesttest.Element
		count, length int
		result        string // the limit for a result; arguments end at that of memory
	}{
		"byte lists":  {guesttest.ByteList, 8_000, 500_000, limit.Output},
		"texts":       {guesttest.Text, 8_000, 500_000, limit.Output},
		"numbers":     {guesttest.U64List, 8_000, 60_000, limit.Memory},
		"booleans":    {guesttest.BoolList, 8_000, 500_000, limit.Memory},
		"empty lists": {guesttest.U64List, 500_000, 0, limit.Memory},
		"empty texts": {guesttest.Text, 1_200_000, 0, limit.Output},
	} {
		for export, want := range map[string]string{"lists": test.result, "pass": limit.Memory} {
			t.Run(name+" "+export, func(t *testing.T) {
				engine := newEngine(t, 512<<20)
				plugin := loadAliased(t, engine, guesttest.AliasedLists(test.element, test.count, test.length, 1), limits,
					func(context.Context, *broker.Call, []any) any {
						t.Error("the host gets the list")
						return nil
					})
				_, _ = callAliased(t, plugin, "lists") // makes the first instance
				before := allocated()
				_, err := callAliased(t, plugin, export)
				bytes := allocated() - before
				var exceeded *limit.Error
				if !errors.As(err, &exceeded) || exceeded.Limit != want {
					t.Errorf("%v, want the limit of %s", err, want)
				}
				if bytes > 3*limits.Memory {
					t.Errorf("the call allocates %d MiB, and its memory limit is %d", bytes>>20, limits.Memory>>20)
				}
			})
		}
	}
}

func callAliased(t *testing.T, plugin *sandbox.Plugin, export string) (*abi.Response, error) {
	t.Helper()
	return plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: export}})
}

// allocated returns the bytes that the process has allocated so far.
func allocated() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.TotalAlloc)
}

// TestHostileListsBesideANeighbour: calls of another plugin find memory while a component passes aliased lists.
func TestHostileListsBesideANeighbour(t *testing.T) {
	engine := newEngine(t, 256<<20)
	plugin := loadAliased(t, engine, guesttest.AliasedLists(guesttest.ByteList, 8_000, 500_000, 1),
		manifest.Limits{Memory: 16 << 20, Rate: 1_000_000, QueueWait: time.Millisecond},
		func(context.Context, *broker.Call, []any) any { return nil })
	neighbour := load(t, engine, "neighbour", manifest.Limits{Rate: 1_000_000, QueueWait: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, export := range []string{"lists", "pass"} {
		group.Go(func() {
			for ctx.Err() == nil {
				_, _ = callAliased(t, plugin, export)
			}
		})
	}
	const calls = 100
	failed := 0
	for range calls {
		delivery, delivered := context.WithCancel(t.Context())
		_, err := neighbour.Call(delivery, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "big",
			Arguments: json.RawMessage(`{"n":1000000}`)}})
		delivered()
		if err != nil {
			failed++
			t.Log(err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d calls of the neighbour failed", failed, calls)
	}
}

// TestValuesAreReleased: what a component has passed before does not count, so that it can pass any amount in parts.
func TestValuesAreReleased(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, 64<<20)
	passed, most := 0, int64(0)
	plugin := loadAliased(t, engine, guesttest.AliasedLists(guesttest.ByteList, 20, 500_000, 30),
		manifest.Limits{Memory: 16 << 20, QueueWait: time.Millisecond},
		func(_ context.Context, _ *broker.Call, args []any) any {
			for _, list := range args[0].([]any) {
				passed += len(list.([]byte))
			}
			most = max(most, engine.Used())
			return nil
		})
	if _, err := callAliased(t, plugin, "pass"); err != nil || passed != 300_000_000 {
		t.Errorf("%d bytes, %v", passed, err)
	}
	if most < 10_000_000 || most > 40_000_000 {
		t.Errorf("%d bytes are in use while 10,000,000 are passed", most)
	}
	plugin.Unload()
	awaitUnused(t, engine)
}

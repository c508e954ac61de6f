package sandbox_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// newEngine returns an engine with a memory budget.
func newEngine(t *testing.T, budget int64) *sandbox.Engine {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t), MemoryBudget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// load loads the guest probe under a name.
func load(t *testing.T, engine *sandbox.Engine, name string, limits manifest.Limits) *sandbox.Plugin {
	t.Helper()
	limits.Time = cmp.Or(limits.Time, patience)
	plugin := engine.Load(sandbox.Spec{Name: name, Wasm: probe(t), Modules: []brokerModule{deniedHTTP}, Limits: limits})
	t.Cleanup(func() {
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	})
	return plugin
}

// occupy starts n calls that hold an instance until stop is called.
func occupy(t *testing.T, plugin *sandbox.Plugin, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group, started sync.WaitGroup
	for range n {
		started.Add(1)
		once := sync.OnceFunc(started.Done)
		group.Go(func() {
			_, _ = plugin.Call(ctx, &catalog.Invocation{
				Request: &abi.Request{Method: abi.CallTool, Name: "progress",
					Arguments: json.RawMessage(`{"n":1000000000}`)},
				Progress: func(abi.Progress) { once() },
			})
			once()
		})
	}
	started.Wait()
	return func() { cancel(); group.Wait() }
}

// TestHostileMemory makes more calls than the budget has memory for.
func TestHostileMemory(t *testing.T) {
	t.Parallel()
	t.Run("compiled before", func(t *testing.T) {
		t.Parallel()
		floodMemory(t, newEngine(t, floodBudget))
	})
	// Interpreted code, compiled code and the images of both plugins are loaded while calls hold memory.
	t.Run("compiled meanwhile", func(t *testing.T) {
		t.Parallel()
		engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir(), MemoryBudget: floodBudget})
		if err != nil {
			t.Fatal(err)
		}
		floodMemory(t, engine)
	})
	for name, arguments := range map[string]string{"answers": `{"n":%d}`,
		"requests": `{"n":%d,"padding":"` + strings.Repeat("x", 300<<10) + `"}`} {
		t.Run("large "+name, func(t *testing.T) {
			t.Parallel()
			floodAnswers(t, newEngine(t, answersBudget), arguments)
		})
	}
}

const (
	answersBudget = 80 << 20
	answerBytes   = 1 << 20
)

// floodAnswers makes eight callers hold large answers until the budget has no memory for more.
func floodAnswers(t *testing.T, engine *sandbox.Engine, arguments string) {
	plugin := load(t, engine, "a", manifest.Limits{QueueWait: time.Millisecond, Rate: 100_000, Output: 64 << 20,
		Memory: 256 << 20})
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, plugin, "echo", object{"text": "x"}); err != nil {
		t.Fatal(err)
	}
	var done, refused, most atomic.Int64
	var group sync.WaitGroup
	enough := func() bool { return done.Load() > 0 && refused.Load() > 0 }
	for range 8 {
		group.Go(func() {
			var held []*abi.Response
			defer func() { runtime.KeepAlive(held) }()
			for n := 0; n < 3 || n < 300 && !enough(); n++ {
				ctx, delivered := context.WithCancel(t.Context())
				response, err := plugin.Call(ctx, &catalog.Invocation{
					Request: &abi.Request{Method: abi.CallTool, Name: "big",
						Arguments: json.RawMessage(fmt.Sprintf(arguments, answerBytes))}})
				used := engine.Used()
				for before := most.Load(); used > before && !most.CompareAndSwap(before, used); before = most.Load() {
				}
				var exceeded *limit.Error
				switch {
				case err == nil:
					done.Add(1)
				case errors.As(err, &exceeded) && exceeded.Limit == limit.Budget:
					refused.Add(1)
				default:
					t.Error(err)
				}
				if refused.Load() > 0 {
					delivered()
					continue
				}
				held = append(held, response)
				defer delivered()
			}
		})
	}
	group.Wait()
	if !enough() {
		t.Errorf("%d calls done, %d refused: this test needs both", done.Load(), refused.Load())
	}
	if n := most.Load(); n > answersBudget {
		t.Errorf("%d bytes were in use of %d", n, answersBudget)
	}
	if !plugin.Unload() {
		t.Error("it is not unloaded")
	}
	awaitUnused(t, engine)
}

// awaitUnused waits until no memory is in use.
func awaitUnused(t *testing.T, engine *sandbox.Engine) {
	t.Helper()
	if !testwait.Until(t, func() bool { return engine.Used() == 0 }) {
		t.Fatalf("%d bytes are in use after everything has been delivered and unloaded", engine.Used())
	}
}

// TestDeliveredAnswers checks that an answer and its copies are charged until it has been delivered.
func TestDeliveredAnswers(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, 0)
	plugin := load(t, engine, "a", manifest.Limits{Rate: 100_000})
	for n, least := range map[int]int64{100: 0, answerBytes: 3 * answerBytes, answerBytes + 1: 3 * answerBytes} {
		delivery, delivered := context.WithCancel(t.Context())
		ctx, end := context.WithCancel(delivery)
		defer end()
		invocation := &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "big",
			Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}}
		if n > answerBytes {
			invocation.Delivery = delivery
		}
		response, err := plugin.Call(ctx, invocation)
		if err != nil {
			t.Fatal(err)
		}
		if n > answerBytes {
			end()
			time.Sleep(50 * time.Millisecond) // a charge that ended with ctx would do so on a goroutine of its own
		}
		if !plugin.Unload() {
			t.Error("it is not unloaded")
		}
		if used := engine.Used(); used < least || used > 2*least {
			t.Errorf("%d bytes are in use while an answer of %d waits to be delivered", used, n)
		}
		runtime.KeepAlive(response)
		delivered()
		awaitUnused(t, engine)
	}
}

// TestDroppedAnswers checks that an answer whose context never ends is charged until it is garbage, and that a call
// which needs the memory collects such answers.
func TestDroppedAnswers(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, answersBudget)
	plugin := load(t, engine, "a", manifest.Limits{QueueWait: patience, Rate: 100_000, Output: 64 << 20,
		Memory: 256 << 20})
	for range 30 {
		if _, err := plugin.Call(t.Context(), &catalog.Invocation{
			Request: &abi.Request{Method: abi.CallTool, Name: "big",
				Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, answerBytes))}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileEndlessCaller: a caller's context may live as long as its session, with many calls. Answers that nobody has
// any more leave no charge, and nothing of them stays with the context.
func TestHostileEndlessCaller(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, answersBudget)
	plugin := load(t, engine, "a", manifest.Limits{QueueWait: patience, Rate: 100_000, Output: 64 << 20,
		Memory: 256 << 20})
	session, end := context.WithCancel(t.Context())
	defer end()
	for range 30 {
		ctx, ended := context.WithCancel(session)
		_, err := plugin.Call(ctx, &catalog.Invocation{Delivery: session, Request: &abi.Request{Method: abi.CallTool,
			Name: "big", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, answerBytes))}})
		ended()
		if err != nil {
			t.Fatal(err)
		}
	}
	plugin.Unload()
	if !testwait.Until(t, func() bool {
		runtime.GC()
		return engine.Used() == 0
	}) {
		t.Errorf("%d bytes are in use after all answers were dropped", engine.Used())
	}
}

const floodBudget = 128 << 20

func floodMemory(t *testing.T, engine *sandbox.Engine) {
	a := load(t, engine, "a", manifest.Limits{QueueWait: time.Millisecond, Rate: 100_000})
	b := load(t, engine, "b", manifest.Limits{QueueWait: time.Millisecond, Rate: 100_000})
	var done, refused atomic.Int64
	var most atomic.Int64
	var group sync.WaitGroup
	enough := func() bool { return done.Load() > 0 && refused.Load() > 0 }
	for i := range 16 {
		plugin := []*sandbox.Plugin{a, b}[i%2]
		group.Go(func() {
			for n := 0; n < 5 || n < 1000 && !enough(); n++ { // on a busy machine few calls run at once
				_, err := plugin.Call(t.Context(),
					&catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "eat_memory",
						Arguments: json.RawMessage(`{"n":20}`)}})
				for used := engine.Used(); used > most.Load(); {
					most.Store(used)
				}
				var exceeded *limit.Error
				switch {
				case err == nil:
					done.Add(1)
				case errors.As(err, &exceeded) && exceeded.Limit == limit.Budget:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if !enough() {
		t.Errorf("%d calls done, %d refused: this test needs both", done.Load(), refused.Load())
	}
	if n := most.Load(); n > floodBudget {
		t.Errorf("%d bytes were in use of %d", n, floodBudget)
	}
	if _, err := call(t, a, "echo", object{"text": "x"}); err != nil {
		t.Errorf("after the flood: %v", err)
	}
}

// TestIdleInstancesAreReclaimed checks that idle instances of one plugin are closed for calls of another.
func TestIdleInstancesAreReclaimed(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, 128<<20)
	a := load(t, engine, "a", manifest.Limits{})
	b := load(t, engine, "b", manifest.Limits{})
	if _, err := call(t, b, "echo", object{"text": "x"}); err != nil {
		t.Fatal(err)
	}
	occupy(t, a, 8)() // leaves idle instances, though not all at once
	before := engine.Used()
	stop := occupy(t, b, 10)
	defer stop()
	if _, err := call(t, b, "eat_memory", object{"n": 8}); err != nil {
		t.Errorf("with %d bytes in use before: %v", before, err)
	}
}

// TestWaitForMemory checks that a call waits for memory until another call has ended.
func TestWaitForMemory(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, 48<<20)
	plugin := load(t, engine, "a", manifest.Limits{QueueWait: patience})
	stop := occupy(t, plugin, 1)
	results := make(chan error)
	for range 3 {
		go func() {
			_, err := call(t, plugin, "echo", object{"text": "x"})
			results <- err
		}()
	}
	stop()
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestUnload checks that an unloaded plugin releases all memory and is loaded again by the next call.
func TestUnload(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, 0)
	plugin := load(t, engine, "a", manifest.Limits{})
	for i := range 3 {
		if got := text(t, plugin, "count", object{}); got != "1" {
			t.Errorf("round %d: count = %s", i, got)
		}
		if !plugin.Unload() {
			t.Fatal("it is not unloaded")
		}
		if n := engine.Used(); n != 0 {
			t.Errorf("round %d: an unloaded plugin takes %d bytes", i, n)
		}
	}
	stop := occupy(t, plugin, 1)
	if plugin.Unload() {
		t.Error("it was unloaded during a call")
	}
	stop()
}

// TestStateIsNotUnloaded checks that a plugin with state is not unloaded.
func TestStateIsNotUnloaded(t *testing.T) {
	t.Parallel()
	for _, state := range []manifest.State{manifest.StateSession, manifest.StateShared} {
		plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: state})
		for i := range 2 {
			if got, err := sessionCall(t.Context(), plugin, "", "a", "count"); err != nil || got != fmt.Sprint(i+1) {
				t.Errorf("%s: count = %s, %v", state, got, err)
			}
			if plugin.Unload() {
				t.Errorf("%s: unloaded", state)
			}
		}
	}
}

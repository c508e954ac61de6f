package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// bombLimits are smaller than the default limits, so that the tests end soon.
var bombLimits = compile.Limits{Memory: 512 << 20, CPU: time.Second, Time: 5 * time.Minute, Code: 16, BaseCode: 4 << 20}

// bombReport is the outcome of a process that was given a hostile module.
type bombReport struct {
	Read, Prepared, Called string
	Interpreted            bool
	Took                   time.Duration
	// Resident is the peak memory of the process, Compiler that of the compiling child, in bytes.
	Resident, Compiler int64
}

const bombVariable = "HAKO_TEST_BOMB"

// TestHostileModules gives each hostile module to a process of its own, which reads, prepares and calls it as a host
// does. That process must stay small, and the compiler within its limits.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	for name, wasm := range guesttest.Bombs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if report := detonate(t, wasm()); report.Read != "" {
				t.Errorf("refused before approval, which a slow plugin need not be: %s", report.Read)
			}
		})
	}
	for name, wasm := range guesttest.Oversized() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if report := detonate(t, wasm()); report.Read == "" {
				t.Error("not refused before approval")
			}
		})
	}
}

// detonate gives a module to a process of its own.
func detonate(t *testing.T, wasm []byte) (report bombReport) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bomb.wasm"), wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBombServer$", "-test.v")
	server.Env = append(os.Environ(), bombVariable+"="+dir)
	if output, err := server.CombinedOutput(); err != nil {
		t.Fatalf("the server died: %v\n%.2000s", err, output)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err = errors.Join(err, json.Unmarshal(raw, &report)); err != nil {
		t.Fatal(err)
	}
	outcome := "compiled"
	switch {
	case report.Read != "":
		outcome = "refused: " + report.Read
	case report.Prepared != "":
		outcome = "refused: " + report.Prepared
	case report.Interpreted:
		outcome = "interpreted"
	}
	used := server.ProcessState.UserTime() + server.ProcessState.SystemTime()
	t.Logf("%d KiB; %.1f s of processor time, server %d MiB, compiler %d MiB; %s", len(wasm)>>10, used.Seconds(),
		report.Resident>>20, report.Compiler>>20, outcome)
	// The largest interpreted modules and uncollected garbage.
	const most = raceFactor << 30
	if report.Resident > most {
		t.Errorf("the server took %d MiB", report.Resident>>20)
	}
	return report
}

// TestBombServer is the process of TestHostileModules.
func TestBombServer(t *testing.T) {
	dir := os.Getenv(bombVariable)
	if dir == "" {
		t.Skip("it is started by TestHostileModules")
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "bomb.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	report := serveBomb(t, dir, wasm)
	report.Took = time.Since(start)
	report.Resident, report.Compiler = memoryPeaks(t)
	data, err := json.Marshal(report)
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "report.json"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func serveBomb(t *testing.T, dir string, wasm []byte) (report bombReport) {
	if _, err := wasmfile.Read(wasm); err != nil {
		report.Read = err.Error()
		return report
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	engine.LimitCompiler(bombLimits)
	plugin := engine.Load(sandbox.Spec{Name: "bomb", Wasm: func() ([]byte, error) { return wasm, nil }})
	defer func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := plugin.Prepare(t.Context()); err != nil {
		report.Prepared = err.Error()
	}
	if !plugin.Prepared() && report.Prepared == "" {
		report.Prepared = "not prepared"
	}
	report.Interpreted = plugin.Stats().Interpreted
	_, err = plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
	report.Called = fmt.Sprint(err)
	return report
}

// loadInNewEngine loads a plugin into an engine of its own, as another process with the same cache would.
func loadInNewEngine(t *testing.T, dir string, spec sandbox.Spec) (*sandbox.Engine, *sandbox.Plugin) {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	spec.Name, spec.Limits.Time = "guest", patience
	plugin := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return engine, plugin
}

// TestHostileModuleIsRemembered checks that the next process does not compile a refused module again until its note is
// removed, that FindRefusal explains it, and that a refused plugin with state is interpreted.
func TestHostileModuleIsRemembered(t *testing.T) {
	t.Parallel()
	wasm := guesttest.Bombs()["1,000 nested loops with 2,000 locals"]()
	for _, state := range []manifest.State{manifest.StateCall, manifest.StateSession} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			spec := sandbox.Spec{Wasm: func() ([]byte, error) { return wasm, nil }, State: state}
			engine, plugin := loadInNewEngine(t, dir, spec)
			engine.LimitCompiler(bombLimits)
			if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() || !plugin.Stats().Interpreted {
				t.Fatalf("%v, %+v", err, plugin.Stats())
			}
			engine, plugin = loadInNewEngine(t, dir, spec)
			release := engine.HoldCompiler()
			if err := plugin.Prepare(t.Context()); err != nil || !plugin.Stats().Interpreted {
				t.Errorf("another process: %v, %+v", err, plugin.Stats())
			}
			release()
			refusal, err := sandbox.FindRefusal(dir, spec.Wasm)
			if err != nil || refusal == nil || refusal.Unusable ||
				!strings.Contains(refusal.Reason, "it took more than") ||
				!strings.Contains(refusal.Problem(), "calls are interpreted") ||
				!strings.Contains(refusal.Remedy(), "remove "+refusal.Note) {
				t.Fatalf("%+v, %v", refusal, err)
			}
			if other, err := sandbox.FindRefusal(dir, smallGuest); other != nil || err != nil {
				t.Errorf("of another module: %+v, %v", other, err)
			}
			if err := os.Remove(refusal.Note); err != nil {
				t.Fatal(err)
			}
			if again, err := sandbox.FindRefusal(dir, spec.Wasm); again != nil || err != nil {
				t.Errorf("without the note: %+v, %v", again, err)
			}
			engine, plugin = loadInNewEngine(t, dir, spec)
			release = engine.HoldCompiler()
			defer release()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := plugin.Prepare(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without the note: %v", err)
			}
			engine.HurryClose()
		})
	}
}

// TestCompileGrace: closing a plugin waits for its compilation as long as the options say.
func TestCompileGrace(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		engine, err := sandbox.New(&sandbox.Options{CompileGrace: given})
		if err != nil {
			t.Fatal(err)
		}
		if got := engine.CompileGrace(); got != want {
			t.Errorf("%v is %v, want %v", given, got, want)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStopCompiling: a plugin that is closed does not wait for a compilation that was stopped, however long it may.
func TestStopCompiling(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir(), CompileGrace: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	release := engine.HoldCompiler()
	plugin := engine.Load(sandbox.Spec{Name: "slow", Wasm: probe(t), Modules: []broker.Module{deniedHTTP},
		Limits: manifest.Limits{Time: patience}})
	if _, err := call(t, plugin, "echo", object{"text": "x"}); err != nil {
		t.Error(err)
	}
	if got := engine.Compiling(); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("compiling are %q", got)
	}
	engine.StopCompiling()
	if err := plugin.Close(); err != nil {
		t.Error(err)
	}
	release()
	if got := engine.Compiling(); len(got) != 0 {
		t.Errorf("still compiling are %q", got)
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostileCache damages, removes and write-protects the cache: plugins get slower, but work.
func TestHostileCache(t *testing.T) {
	t.Parallel()
	code := func(dir string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		return files[0]
	}
	for name, harm := range map[string]func(dir string) error{
		"code cut off": func(dir string) error { return os.Truncate(code(dir), 1000) },
		"code emptied": func(dir string) error { return os.Truncate(code(dir), 0) },
		"code removed": func(dir string) error { return os.Remove(code(dir)) },
		"nonsense for code": func(dir string) error {
			return os.WriteFile(code(dir), []byte("nonsense that is as long as a header"), 0o600)
		},
		"all of wazero's gone": func(dir string) error { return os.RemoveAll(filepath.Dir(code(dir))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, plugin := loadInNewEngine(t, dir, sandbox.Spec{Wasm: smallGuest})
			if err := plugin.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			_, plugin = loadInNewEngine(t, dir, sandbox.Spec{Wasm: smallGuest})
			if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() || plugin.Stats().Interpreted {
				t.Errorf("%v, %+v", err, plugin.Stats())
			}
		})
	}
	t.Run("no place", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "cache")
		_, plugin := loadInNewEngine(t, dir, sandbox.Spec{Wasm: smallGuest})
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() || !plugin.Stats().Interpreted {
			t.Errorf("%v, %+v", err, plugin.Stats())
		}
	})
}

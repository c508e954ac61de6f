package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/pdk/abi"
)

// bombLimits are smaller than those of every day, so that the tests end soon.
var bombLimits = compile.Limits{Memory: 512 << 20, CPU: time.Second, Time: 5 * time.Minute, Code: 16, BaseCode: 4 << 20}

// bombReport is what became of a process that was given a bomb.
type bombReport struct {
	Read, Prepared, Called string
	Interpreted            bool
	Took                   time.Duration
	// Resident is the most memory of the process, Compiler that of the child which compiled, in bytes.
	Resident, Compiler int64
}

const bombVariable = "HAKO_TEST_BOMB"

// TestHostileModules gives each bomb to a process of its own, which reads it, prepares it and calls it as a host does. That process stays
// small, the compiler's stays within its limits, and both end.
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
	t.Logf("%d KiB; %.1f s of processor time, server %d MiB, compiler %d MiB; %s", len(wasm)>>10, used.Seconds(), report.Resident>>20, report.Compiler>>20, outcome)
	const most = 768 << 20
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
	if _, err := manifest.Read(wasm); err != nil {
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
	report.Interpreted = plugin.Load().Interpreted
	_, err = plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
	report.Called = fmt.Sprint(err)
	return report
}

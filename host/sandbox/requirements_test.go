package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileInvalidModules: a module that cannot be run is the guest's fault, whatever finds it out, and with or
// without a compiler.
func TestHostileInvalidModules(t *testing.T) {
	t.Parallel()
	for name, wasm := range guesttest.Invalid() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := wasmfile.Read(wasm()); err != nil {
				t.Fatalf("it is refused when it is read: %v", err)
			}
			for _, prepared := range []bool{false, true} {
				plugin := newEngine(t, 0).Load(sandbox.Spec{Name: "invalid", Wasm: guesttest.Bytes(wasm()),
					Limits: manifest.Limits{Time: patience, CPU: 10}})
				t.Cleanup(func() { _ = plugin.Close() })
				if prepared {
					_ = plugin.Prepare(t.Context())
				}
				_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
				var guest *catalog.GuestError
				var exceeded *limit.Error
				if !errors.As(err, &guest) && !errors.As(err, &exceeded) {
					t.Errorf("prepared %v: %v", prepared, err)
				}
			}
		})
	}
}

// TestHostileStartMemory: the memories of a component count together, each as often as it is instantiated, and what
// cannot be linked is found without compiling it.
func TestHostileStartMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wasm   func() ([]byte, error)
		memory int64
		want   string
	}{
		"a module within its limit": {guesttest.Bytes(guesttest.Assemble(8, nil)), 8 << 20, ""},
		"a module of 4 GiB": {guesttest.Bytes(guesttest.Invalid()["4 GiB of memory"]()), 1 << 30,
			"starts with 4096 MiB of linear memory, and limits.memory is 1024 MiB"},
		"a module beyond the default": {guesttest.Bytes(guesttest.Assemble(65, nil)), 0,
			"starts with 65 MiB of linear memory, and limits.memory is 64 MiB"},
		"three memories of one page": {wat(t, "nested.wasm"), 192 << 10, ""},
		"three memories of one page, and a limit of two": {wat(t, "nested.wasm"), 128 << 10,
			"starts with 192 KiB of linear memory"},
		"components that multiply each other":       {wat(t, "doubling.wasm"), 0, "component instances"},
		"a module that gets at the fuel of another": {wat(t, "theft.wasm"), 0, "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wasm, err := test.wasm()
			if err != nil {
				t.Fatal(err)
			}
			module, err := wasmfile.Read(wasm)
			if err == nil {
				err = sandbox.CheckStart(module, manifest.Limits{Memory: test.memory})
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

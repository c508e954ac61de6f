package rewrite_test

import (
	"bytes"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// TestStub: a stub is a valid module with the same imports and exports, without the code, and its own for each module.
func TestStub(t *testing.T) {
	t.Parallel()
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = runtime.Close(t.Context()) })
	result, err := rewrite.Module(guesttest.Build(t, "dev/kit/guesttest/guests/probe"), 1000, rewrite.MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	stub, err := rewrite.Stub(result.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	original, err := runtime.CompileModule(t.Context(), result.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := runtime.CompileModule(t.Context(), stub)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(compiled.ExportedFunctions()), len(original.ExportedFunctions()); got != want {
		t.Errorf("%d exports, want %d", got, want)
	}
	if got, want := len(compiled.ImportedFunctions()), len(original.ImportedFunctions()); got != want {
		t.Errorf("%d imports, want %d", got, want)
	}
	if len(stub) > len(result.Wasm)/2 {
		t.Errorf("the stub has %d of %d bytes", len(stub), len(result.Wasm))
	}
	changed := bytes.Clone(result.Wasm)
	changed[len(changed)-1]++ // of the code or the data
	if other, err := rewrite.Stub(changed); err == nil && bytes.Equal(other, stub) {
		t.Error("another module has the same stub")
	}
	for _, code := range []string{"\x01\x80", "\xff\xff\xff\xff\x0f", "\x02\x02"} {
		module := "\x00asm\x01\x00\x00\x00\x0a" + string(rune(len(code))) + code
		if stub, err := rewrite.Stub([]byte(module)); err == nil && len(stub) > 100 {
			t.Errorf("%q: a stub of %d bytes", code, len(stub))
		}
	}
}

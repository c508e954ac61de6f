package rewrite_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// module joins sections. Sections and functions must be shorter than 128 bytes.
func module(sections ...[]byte) []byte {
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	for _, s := range sections {
		out = append(append(out, s[0], byte(len(s)-1)), s[1:]...)
	}
	return out
}

// TestBulkIsCharged checks the cost of bulk instructions, and that they still get their operands.
func TestBulkIsCharged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		operand byte // one for all three, below 64
		code    []byte
		result  byte // of the type given by code
		steps   int64
	}{
		{"memory.fill", 48, []byte{0xfc, 11, 0}, 0, 3},
		{"memory.copy", 48, []byte{0xfc, 10, 0, 0}, 0, 3},
		{"memory.init", 16, []byte{0xfc, 8, 0, 0}, 0, 1},
		{"table.copy", 8, []byte{0xfc, 14, 0, 0}, 0, 4},
		{"table.init", 2, []byte{0xfc, 12, 0, 0}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			body := []byte{0, 0x41, test.operand / 2, 0x41, test.operand / 4, 0x41, test.operand}
			body = append(append(body, test.code...), 0x0b)
			data := append([]byte{11, 1, 1, 63}, make([]byte, 63)...)
			wasm := module(
				[]byte{1, 1, 0x60, 0, 0},
				[]byte{3, 1, 0},
				[]byte{4, 1, 0x70, 0, 64},
				[]byte{5, 1, 0, 1},
				[]byte{7, 1, 1, 'f', 0, 0},
				[]byte{9, 1, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}, // passive segment of eight functions
				[]byte{12, 1},
				append([]byte{10, 1, byte(len(body))}, body...),
				data,
			)
			const quantum = 1000
			rewritten, err := rewrite.Module(wasm, quantum, rewrite.MaxElements)
			if err != nil {
				t.Fatal(err)
			}
			instance := instantiate(t, rewritten.Wasm)
			if _, err := instance.ExportedFunction("f").Call(t.Context()); err != nil {
				t.Fatal(err)
			}
			// One step is that of the function's entry.
			if steps := quantum - int64(instance.ExportedGlobal(rewrite.FuelExport).Get()) - 1; steps != test.steps {
				t.Errorf("it costs %d steps, want %d", steps, test.steps)
			}
		})
	}
}

// TestTablesAreBounded grows a table, which is host memory, without bound.
func TestTablesAreBounded(t *testing.T) {
	t.Parallel()
	// f: table.grow(null, n), for a table without maximum beside one of 10.
	code := []byte{0, 0xd0, 0x70, 0x20, 0, 0xfc, 15, 0, 0x0b}
	growing := func(table ...byte) []byte {
		return module([]byte{1, 1, 0x60, 1, 0x7f, 1, 0x7f}, []byte{3, 1, 0}, append([]byte{4}, table...),
			[]byte{7, 1, 1, 'f', 0, 0}, append([]byte{10, 1, byte(len(code))}, code...))
	}
	rewritten, err := rewrite.Module(growing(2, 0x70, 0, 1, 0x70, 1, 10, 10), 1000, rewrite.MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	grow := instantiate(t, rewritten.Wasm).ExportedFunction("f")
	for _, test := range []struct {
		by   uint64
		want int32
	}{{5, 1}, {rewrite.MaxElements, -1}, {rewrite.MaxElements / 4, 6}} {
		results, err := grow.Call(t.Context(), test.by)
		if err != nil || int32(results[0]) != test.want {
			t.Errorf("grow by %d: %v, %v; want %d", test.by, results, err, test.want)
		}
	}
	for name, table := range map[string][]byte{
		"one large table": {1, 0x70, 0, 0xff, 0xff, 0xff, 0x7f}, "two large tables": {2, 0x70, 0, 0xff, 0xff, 0x3f,
			0x70, 0, 0xff, 0xff, 0x3f},
	} {
		if _, err := rewrite.Module(growing(table...), 1000, rewrite.MaxElements); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// instantiate returns an instance with unlimited fuel.
func instantiate(t *testing.T, wasm []byte) api.Module {
	t.Helper()
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features))
	t.Cleanup(func() { _ = runtime.Close(context.Background()) })
	_, err := runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, module api.Module, _ []uint64) {
			module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal).Set(1000)
		}), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := runtime.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

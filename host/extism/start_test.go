package extism_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hako-run/hako/host/wasmfile"
)

// assemble returns a guest without a language runtime. Its start allocates a block and stores the offset in a global;
// describe and call return that block, "{}", as their output.
func assemble() []byte {
	text := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	imported := func(name string, kind byte) []byte {
		return slices.Concat(text("extism:host/env"), text(name), []byte{0, kind})
	}
	exported := func(name string, kind, index byte) []byte { return append(text(name), kind, index) }
	section := func(id byte, entries ...[]byte) []byte {
		body := append([]byte{byte(len(entries))}, slices.Concat(entries...)...)
		return slices.Concat([]byte{id}, binary.AppendUvarint(nil, uint64(len(body))), body)
	}
	function := func(code ...byte) []byte { return append([]byte{byte(len(code) + 1), 0}, code...) }
	const i32, i64 = 0x7f, 0x7e
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{0x60, 0, 0}, []byte{0x60, 0, 1, i32}, []byte{0x60, 1, i64, 1, i64},
			[]byte{0x60, 2, i64, i64, 0}),
		section(2, imported("alloc", 2), imported("output_set", 3), imported("store_u64", 3)),
		section(3, []byte{0}, []byte{1}),
		section(5, []byte{0, 1}),
		section(6, []byte{i64, 1, 0x42, 0, 0x0b}),
		section(7, exported("memory", 2, 0), exported("_initialize", 0, 3), exported("describe", 0, 4),
			exported("call", 0, 4)),
		section(10,
			function(0x42, 2, 0x10, 0, 0x24, 0, // global = alloc(2)
				0x23, 0, 0x42, 0xfb, 0xfa, 0x01, 0x10, 2, // store_u64(global, "{}")
				0x0b),
			function(0x23, 0, 0x42, 2, 0x10, 1, 0x41, 0, 0x0b)), // output_set(global, 2); return 0
	)
}

// TestStartStateIsKept checks that host state which the start of a guest created exists in each of its calls: copies of
// the guest's memory would not have it.
func TestStartStateIsKept(t *testing.T) {
	t.Parallel()
	if _, err := wasmfile.Read(assemble()); err != nil {
		t.Fatal(err)
	}
	plugin := load(t, setup{wasm: assemble()})
	for range 3 {
		if response, err := call(t, plugin, "any", nil); err != nil || response.IsError {
			t.Fatalf("%+v, %v", response, err)
		}
	}
}

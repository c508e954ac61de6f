// Package wasmtest builds Wasm modules for tests, section by section, also malformed ones.
package wasmtest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Module joins the header of a core module and sections.
func Module(sections ...[]byte) []byte {
	return slices.Concat([]byte(wasmbin.Header), slices.Concat(sections...))
}

// Number encodes n as LEB128.
func Number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// Sized puts the length of b in front of it.
func Sized(b []byte) []byte { return append(Number(len(b)), b...) }

// Section encodes a section with entries.
func Section(id byte, entries ...[]byte) []byte {
	content := append(Number(len(entries)), slices.Concat(entries...)...)
	return append([]byte{id}, Sized(content)...)
}

// Custom encodes a custom section.
func Custom(name, content string) []byte {
	return append([]byte{wasmbin.CustomSection}, Sized(append(Sized([]byte(name)), content...))...)
}

// Named encodes an export: its name, its kind and its index.
func Named(name string, rest ...byte) []byte { return append(Sized([]byte(name)), rest...) }

// Imported encodes an import: its module and name, its kind and what follows for that kind.
func Imported(module, name string, rest ...byte) []byte {
	return append(Sized([]byte(module)), Named(name, rest...)...)
}

var (
	// Types are () -> (), (i32) -> i32, (i32) -> (), (i32, i32, i32, i32) -> i32 and (i64) -> i64.
	Types = Section(wasmbin.TypeSection, []byte{0x60, 0, 0}, []byte{0x60, 1, 0x7F, 1, 0x7F}, []byte{0x60, 1, 0x7F, 0},
		[]byte{0x60, 4, 0x7F, 0x7F, 0x7F, 0x7F, 1, 0x7F}, []byte{0x60, 1, 0x7E, 1, 0x7E})
	// Memory is a memory of at least two pages.
	Memory = Section(wasmbin.MemorySection, []byte{0, 2})
)

// Plugin is a module with the exports of ABI 1, with imports and custom sections.
func Plugin(imports [][]byte, customs ...[]byte) []byte {
	functions := byte(0)
	for _, i := range imports {
		if i[len(i)-2] == 0 {
			functions++
		}
	}
	parts := [][]byte{
		Types, Section(wasmbin.ImportSection, imports...),
		Section(wasmbin.FunctionSection, []byte{0}, []byte{1}), Memory,
		Section(wasmbin.ExportSection, Named("memory", 2, 0), Named("hako_abi_1", 0, functions),
			Named("hako_call", 0, functions+1), Named("_initialize", 0, functions)),
	}
	return Module(append(parts, customs...)...)
}

// Component returns a component of host/wasm/component/testdata.
func Component(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "host/wasm/component/testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

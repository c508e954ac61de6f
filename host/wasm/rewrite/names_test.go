package rewrite

import (
	"bytes"
	"maps"
	"testing"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// nameSectionOf is a name section with these subsections.
func nameSectionOf(subsections ...[]byte) []byte {
	content := append(wasmbin.AppendName(nil, nameSection), bytes.Join(subsections, nil)...)
	return wasmbin.AppendSection(nil, wasmbin.CustomSection, content)
}

func TestFunctionNames(t *testing.T) {
	t.Parallel()
	list := func(count int, entries ...[]byte) []byte {
		body := append([]byte{byte(count)}, bytes.Join(entries, nil)...)
		return append([]byte{functionNames, byte(len(body))}, body...)
	}
	a, b := append([]byte{1}, "\x01a"...), append([]byte{2}, "\x02\xffb"...)
	for what, test := range map[string]struct {
		module []byte
		want   map[uint32]string
	}{
		"names":          {nameSectionOf([]byte{0, 2, 1, 'm'}, list(2, a, b), []byte{9, 1, 0}), map[uint32]string{1: "a", 2: "\xffb"}},
		"too short":      {nameSectionOf(list(9, a)), map[uint32]string{1: "a"}},
		"a longer count": {nameSectionOf([]byte{functionNames, 5, 0xff, 0xff, 0xff, 0xff, 0x0f}), map[uint32]string{}},
		"another": {wasmbin.AppendSection(nil, wasmbin.CustomSection, wasmbin.AppendName(nil, "other")),
			map[uint32]string{}},
		"garbage": {[]byte{0, 0xff, 0xff}, map[uint32]string{}},
	} {
		module := append([]byte(wasmbin.Header), test.module...)
		if got := FunctionNames(module, []uint32{1, 2, 3}); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestNamesAreNotCopied: a name section of 10 MB costs no memory.
func TestNamesAreNotCopied(t *testing.T) {
	entries := []byte{0x80, 0x80, 0x40} // 1 Mi entries
	for i := range uint64(1 << 20) {
		entries = wasmbin.AppendName(wasmbin.AppendUint(entries, i), "function")
	}
	subsection := append(wasmbin.AppendUint([]byte{functionNames}, uint64(len(entries))), entries...)
	module := append([]byte(wasmbin.Header), nameSectionOf(subsection)...)
	allocations := testing.AllocsPerRun(1, func() {
		if got := FunctionNames(module, []uint32{7}); got[7] != "function" {
			t.Errorf("got %v", got)
		}
	})
	if allocations > 20 {
		t.Errorf("%v allocations", allocations)
	}
}

func FuzzFunctionNames(f *testing.F) {
	f.Add(append([]byte(wasmbin.Header), nameSectionOf([]byte{functionNames, 4, 1, 1, 1, 'a'})...))
	f.Fuzz(func(t *testing.T, module []byte) {
		if names := FunctionNames(module, []uint32{0, 1, 2}); len(names) > 3 {
			t.Errorf("%d names", len(names))
		}
	})
}

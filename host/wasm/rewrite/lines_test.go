package rewrite

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

func TestFunctionLines(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"dwarf4", "dwarf5"} {
		module, err := os.ReadFile("testdata/lines/" + file + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint32]string{1: "demo.c:7", 2: "lib/divide.h:1"}
		if got := FunctionLines(module, []uint32{0, 1, 2, 3}); !maps.Equal(got, want) {
			t.Errorf("%s: %v", file, got)
		}
		if got := FunctionLines(module, []uint32{2}); len(got) != 1 {
			t.Errorf("%s: %v", file, got)
		}
	}
}

// debugLines is a module with one function, at address 2, and this line section.
func debugLines(section ...[]byte) []byte {
	module := wasmbin.AppendSection([]byte(wasmbin.Header), wasmbin.CodeSection, []byte("\x01\x02\x00\x0b"))
	content := append(wasmbin.AppendName(nil, lineSection), slices.Concat(section...)...)
	return wasmbin.AppendSection(module, wasmbin.CustomSection, content)
}

// TestHostileLines: debug information that lies costs nothing and gives no line.
func TestHostileLines(t *testing.T) {
	t.Parallel()
	const (
		head    = "\x01\x01\x01\xfb\x0e\x04\x00\x01\x01" // of version 4, with three standard opcodes
		address = "\x00\x05\x02\x02\x00\x00\x00"         // 2
	)
	sized := func(text string) []byte {
		n := len(text)
		return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, text...)
	}
	unit := func(version, header, program string) []byte {
		return sized(version + string(sized(header)) + program)
	}
	five := func(tables string) []byte { return unit("\x05\x00\x04\x00", head+tables, address+"\x01") }
	for what, test := range map[string]struct {
		section []byte
		want    string
	}{
		"a line":             {unit("\x04\x00", head+"\x00a.c\x00\x00\x00\x00\x00", address+"\x01"), "a.c:1"},
		"a special opcode":   {unit("\x04\x00", head+"\x00a.c\x00\x00\x00\x00\x00", address+"\x0c"), "a.c:4"},
		"two units":          {append(unit("\x04\x00", head, ""), unit("\x03\x00", head[:1]+head[2:]+"\x00b\x00\x00\x00\x00\x00", address+"\x01")...), "b:1"},
		"a folder":           {unit("\x04\x00", head+"d\x00\x00a.c\x00\x01\x00\x00\x00", address+"\x01"), "d/a.c:1"},
		"no such folder":     {unit("\x04\x00", head+"d\x00\x00a.c\x00\xff\xff\x03\x00\x00\x00", address+"\x01"), ""},
		"no such file":       {unit("\x04\x00", head+"\x00\x00", address+"\x01"), ""},
		"a line before 1":    {unit("\x04\x00", head+"\x00a\x00\x00\x00\x00\x00", address+"\x03\x7f\x01"), ""},
		"left out":           {unit("\x04\x00", head+"\x00a\x00\x00\x00\x00\x00", "\x00\x05\x02\x00\x00\x00\x00\x02\x02\x01"), ""},
		"ends at once":       {[]byte("\x04\x00\x00\x00\x04\x00"), ""},
		"longer than it is":  {[]byte("\xff\xff\xff\xff\x04\x00"), ""},
		"version 6":          {unit("\x06\x00", head+"\x00a\x00\x00\x00\x00\x00", address+"\x01"), ""},
		"range 0":            {unit("\x04\x00", "\x01\x01\x01\xfb\x00\x04\x00\x01\x01", address+"\x10"), ""},
		"files without form": {five("\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), ""},
		"too many files":     {five("\x00\x00\x01\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7fa\x00"), ""},
		"an unknown form":    {five("\x00\x00\x01\x01\x63\x02aa"), ""},
		"a text elsewhere":   {five("\x00\x00\x01\x01\x1f\x02\xff\xff\xff\xff\xff\xff\xff\xff"), ""},
		"a large header":     {unit("\x04\x00", head+"\x00a\x00\x00\x00\x00\x00"+strings.Repeat("\x00", maxLineHeader), address+"\x01"), ""},
	} {
		if got := FunctionLines(debugLines(test.section), []uint32{0})[0]; got != test.want {
			t.Errorf("%s: %q, want %q", what, got, test.want)
		}
	}
}

func FuzzFunctionLines(f *testing.F) {
	for _, file := range []string{"dwarf4", "dwarf5"} {
		module, err := os.ReadFile("testdata/lines/" + file + ".wasm")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(module)
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		if lines := FunctionLines(module, []uint32{0, 1, 2}); len(lines) > 3 {
			t.Errorf("%d lines", len(lines))
		}
	})
}

package rewrite_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// assembled returns a module of functions i32 -> i32 with one i32 local each; the first is exported as "f".
func assembled(functions ...[]byte) []byte {
	sized := func(data []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(data))), data...) }
	code := binary.AppendUvarint(nil, uint64(len(functions)))
	for _, function := range functions {
		code = append(code, sized(append([]byte{1, 1, 0x7f}, append(function, 0x0b)...))...)
	}
	n := byte(len(functions))
	out := module([]byte{1, 1, 0x60, 1, 0x7f, 1, 0x7f}, append([]byte{3, n}, make([]byte, n)...),
		[]byte{7, 1, 1, 'f', 0, 0})
	return append(append(out, 10), sized(code)...)
}

// chain returns a switch over n < 64 parts; each does some work and jumps to the next.
func chain(n byte, work []byte) []byte {
	code := append([]byte{0x03, 0x40}, bytes.Repeat([]byte{0x02, 0x40}, int(n))...)
	code = append(code, 0x20, 1, 0x0e, n)
	for k := range n {
		code = append(code, k)
	}
	code = append(code, 0)
	for k := range n {
		code = append(append(code, 0x0b), work...)
		if k+1 < n {
			code = append(code, 0x41, k+1, 0x21, 1, 0x0c, n-1-k)
		}
	}
	return append(code, 0x0b)
}

// TestSteps counts the steps of small programs: functions and loops count once, leaves nothing, long paths by their
// length.
func TestSteps(t *testing.T) {
	t.Parallel()
	const square = "\x20\x00\x20\x00\x6c\x21\x00" // a *= a: 6 units of work
	repeat := func(code string, n int) []byte { return bytes.Repeat([]byte(code), n) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	result := []byte{0x20, 0}
	loop := func(body []byte) []byte { // with local 1 from 0 to 99
		return join([]byte{0x03, 0x40}, body,
			[]byte{0x20, 1, 0x41, 1, 0x6a, 0x22, 1, 0x41, 0xe4, 0, 0x49, 0x0d, 0, 0x0b})
	}
	around := []byte("\x02\x40\x20\x01\x45\x0d\x00" + square + "\x0b")       // block: local 1 == 0? leave it; square
	jumps := []byte("\x03\x40\x02\x40\x02\x40\x20\x01\x0e\x02\x00\x01\x00" + // loop around a switch over local 1
		"\x0b\x41\x01\x21\x01\x0c\x01" + // part 0: go to part 1
		// Part 1: go to part 0 as often as the parameter says.
		"\x0b\x20\x00\x41\x01\x6b\x22\x00\x04\x40\x41\x00\x21\x01\x0c\x01\x0b\x0b")
	for _, test := range []struct {
		name        string
		functions   [][]byte
		least, most int64
	}{
		{"nothing", [][]byte{result}, 0, 0},
		{"a loop", [][]byte{join(loop(nil), result)}, 100, 100},
		{"a loop after some work", [][]byte{join(repeat(square, 10), loop(nil), result)}, 101, 101},
		{"a long loop", [][]byte{join(loop(repeat(square, 1000)), result)}, 100 * 6000 / 512, 100 * 6000 / 400},
		{"long straight-line code", [][]byte{join(repeat(square, 10_000), result)}, 60_000 / 512, 60_000 / 400},
		{"branches around all of it", [][]byte{join(repeat(string(around), 10_000), result)}, 10_000 * 6 / 512,
			10_000 * 20 / 400},
		{"calls of a small leaf", [][]byte{join(repeat("\x20\x00\x10\x01\x21\x00", 1000), result),
			join(repeat(square, 5), result)}, 1000 * 40 / 512, 1000 * 60 / 400},
		{"calls of a large leaf", [][]byte{join(repeat("\x20\x00\x10\x01\x21\x00", 100), result),
			join(repeat(square, 40), result)}, 100, 220},
		{"a switch with jumps ahead and back", [][]byte{join(jumps, result)}, 20, 20},
		{"many jumps ahead", [][]byte{join(chain(60, repeat(square, 10)), result)}, 60 * 60 / 512, 60 * 70 / 400},
		{"a recursion", [][]byte{{0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x1a, 0x0b, 0x20, 0}}, 20, 21},
		{"a recursion with work on the way back",
			[][]byte{join([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x1a}, repeat(square, 80),
				[]byte{0x0b, 0x20, 0})}, 40, 45},
	} {
		rewritten, err := rewrite.Module(assembled(test.functions...), 1<<40, rewrite.MaxElements)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		instance := instantiate(t, rewritten.Wasm)
		if _, err := instance.ExportedFunction("f").Call(t.Context(), 20); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if steps := 1<<40 - int64(instance.ExportedGlobal(rewrite.FuelExport).Get()); steps < test.least ||
			steps > test.most {
			t.Errorf("%s: %d steps, want %d to %d", test.name, steps, test.least, test.most)
		}
	}
}

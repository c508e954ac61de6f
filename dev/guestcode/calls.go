// Package guestcode assembles small guests for tests. Calls returns a module that makes a list of HostCalls once and
// another one in a loop.
package guestcode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hako-run/hako/pdk/abi"
)

// HostCall is a call of a host function with constant arguments, each an int32, int64 or float64.
type HostCall struct {
	Module, Name string
	Args         []any
	// Result is the type of the result, I32 or I64. Zero: there is none.
	Result byte
}

// Types of results.
const (
	I32 byte = 0x7f
	I64 byte = 0x7e
)

// WASI is the call of a function of WASI preview 1.
func WASI(name string, args ...any) HostCall {
	return HostCall{"wasi_snapshot_preview1", name, args, I32}
}

// Calls makes a guest of ABI 1 with some MiB of memory that holds data at these offsets. Its start does nothing; a call
// of it makes the calls of once and then, for ever, those of loop. Without a loop it returns 0. Results are dropped, so
// each call has to work by itself.
func Calls(mib int, data map[int32][]byte, once, loop []HostCall) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, count int, parts ...[]byte) {
		out = append(append(out, id), sized(number(count), bytes.Join(parts, nil))...)
	}
	types := [][]byte{{0x60, 1, I32, 1, I32}, {0x60, 0, 0}}
	var imports [][]byte
	indexes := map[string]int{}
	code := func(list []HostCall) (body []byte) {
		for _, c := range list {
			name := c.Module + "\x00" + c.Name
			if _, ok := indexes[name]; !ok {
				indexes[name] = len(imports)
				imports = append(imports, bytes.Join([][]byte{sized([]byte(c.Module)), sized([]byte(c.Name)), {0},
					number(len(types))}, nil))
				types = append(types, c.signature())
			}
			for _, arg := range c.Args {
				body = append(body, constant(arg)...)
			}
			body = append(append(body, 0x10), number(indexes[name])...)
			if c.Result != 0 {
				body = append(body, 0x1a)
			}
		}
		return body
	}
	body := append([]byte{0}, code(once)...)
	if len(loop) > 0 {
		body = append(append(append(body, 0x03, 0x40), code(loop)...), 0x0c, 0, 0x0b)
	}
	body = append(body, 0x41, 0, 0x0b)

	section(1, len(types), types...)
	section(2, len(imports), imports...)
	section(3, 2, []byte{0, 1})
	section(5, 1, []byte{0}, number(mib*16))
	section(7, 3, sized([]byte("memory")), []byte{2, 0}, sized([]byte(abi.Entry)), []byte{0}, number(len(imports)),
		sized([]byte("hako_abi_1")), []byte{0}, number(len(imports)+1))
	section(10, 2, sized(body), []byte{2, 0, 0x0b})
	var segments [][]byte
	for _, at := range slices.Sorted(maps.Keys(data)) {
		segments = append(segments, []byte{0}, constant(at), []byte{0x0b}, sized(data[at]))
	}
	section(11, len(data), segments...)
	return out
}

func (c HostCall) signature() []byte {
	params := make([]byte, len(c.Args))
	for i, arg := range c.Args {
		params[i] = map[string]byte{"int32": I32, "int64": I64, "float64": 0x7c}[fmt.Sprintf("%T", arg)]
	}
	results := []byte{0}
	if c.Result != 0 {
		results = []byte{1, c.Result}
	}
	return bytes.Join([][]byte{{0x60}, sized(params), results}, nil)
}

func constant(value any) []byte {
	switch v := value.(type) {
	case int32:
		return append([]byte{0x41}, signed(int64(v))...)
	case int64:
		return append([]byte{0x42}, signed(v)...)
	case float64:
		return binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(v))
	}
	panic(fmt.Sprintf("guesttest: no constant of type %T", value))
}

// signed is the LEB128 encoding of n.
func signed(n int64) (out []byte) {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sized(parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	return append(number(len(data)), data...)
}

package guesttest

import (
	"bytes"
	"encoding/binary"

	"github.com/hako-run/hako/pdk/abi"
)

// Assemble returns a guest of ABI 1 made from machine code, with mib MiB of memory. Each function is i32 -> i32 and has
// two more i32 locals and two i64 locals; the first is the entry point.
func Assemble(mib int, functions ...[]byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, count int, parts ...[]byte) {
		out = append(append(out, id), sized(number(count), bytes.Join(parts, nil))...)
	}
	n := len(functions)
	section(1, 2, []byte{0x60, 1, 0x7f, 1, 0x7f}, []byte{0x60, 0, 0})
	section(3, n+1, make([]byte, n), []byte{1})
	section(5, 1, []byte{0}, number(mib*16))
	section(7, 3, sized([]byte("memory")), []byte{2, 0}, sized([]byte(abi.Entry)), []byte{0, 0},
		sized([]byte("hako_abi_1")), []byte{0}, number(n))
	var code [][]byte
	for _, function := range functions {
		code = append(code, sized([]byte{2, 2, 0x7f, 2, 0x7e}, function, []byte{0x0b}))
	}
	section(10, n+1, append(code, []byte{2, 0, 0x0b})...)
	return out
}

func number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sized(parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	return append(number(len(data)), data...)
}

package guesttest

import "bytes"

// Machine code for Hostile: local 0 is the argument, 1 and 2 are i32, 3 and 4 are i64.
const (
	// divide: 3 = 3 / ++4
	divide = "\x20\x03\x20\x04\x42\x01\x7c\x22\x04\x80\x21\x03"
	// around: unless 0 == 0, divide
	around = "\x02\x40\x20\x00\x45\x0d\x00" + divide + "\x0b"
	// leaf: a function of a few divisions by its argument
	leaf = "\x20\x03\x20\x00\xad\x84\x21\x03\x20\x03\x20\x00\xad\x84\x21\x03\x20\x03\xa7"
	// callLeaf: 0 = function1(0)
	callLeaf = "\x20\x00\x10\x01\x21\x00"
	// fill: 32 MiB of memory = random multiples of four
	fill = "\x03\x40" +
		"\x20\x04\x42\xad\xfe\xd5\xe4\xd4\x85\xfd\xa8\xd8\x00\x7e\x42\x1b\x7c\x21\x04" + // 4 = 4 * a + b
		"\x20\x01\x20\x04\x42\x29\x88\xa7\x41\x02\x74\x36\x02\x00" + // memory[1] = 4 >> 41 << 2
		"\x20\x01\x41\x04\x6a\x22\x01\x41\x80\x80\x80\x10\x49\x0d\x00\x0b" // 1 += 4; 1 < 32 MiB?
	// address: somewhere in there that depends on 1, and on 2, which changes
	address = "\x20\x01\x20\x02\x41\xc4\xe8\xd8\x00\x6a\x22\x02\x6a\x41\xfc\xff\xff\x0f\x71"
	load    = "\x28\x02\x00"
	// chase: 1 = memory[address], for which the processor has to wait
	chase = address + load + "\x21\x01"
	// deep: calls itself a million times, and chases on the way back
	deep = "\x20\x00\x41\xff\xff\x3f\x4b\x04\x40\x41\x00\x0f\x0b\x20\x00\x41\x01\x6a\x10\x01\x22\x01\x21\x02"
)

// Hostile returns guests of ABI 1 with an endless loop that does much work between the places where metering usually
// counts. No compiler generates such code. The guests need 40 MiB of memory.
func Hostile() map[string][]byte {
	times := func(n int, code string) string { return string(bytes.Repeat([]byte(code), n)) }
	forever := func(before, body string) []byte {
		return []byte(before + "\x03\x40" + body + "\x0c\x00\x0b\x00")
	}
	return map[string][]byte{
		"straight-line code":       Assemble(1, forever("", times(20_000, divide))),
		"calls of small functions": Assemble(1, forever("", times(20_000, callLeaf)), []byte(leaf)),
		"branches around all":      Assemble(1, forever("", times(2_000, around))),
		"a chase through memory":   Assemble(40, forever(fill, times(100, chase))),
		"chains of loads":          Assemble(40, forever(fill, times(100, address+times(16, load)+"\x21\x01"))),
		"work after deep recursion": Assemble(40, forever(fill, "\x41\x00\x10\x01\x1a"),
			[]byte(deep+times(20, chase)+"\x20\x01")),
	}
}

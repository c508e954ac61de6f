package guesttest

import (
	"bytes"
	"encoding/binary"
)

// Sink is the interface that the component of AliasedLists imports, with the function Pass.
const (
	Sink = "test:host/sink"
	Pass = "pass"
)

// Element is the type of the elements of AliasedLists, as the binary format of components encodes it.
type Element []byte

// Elements of AliasedLists.
var (
	ByteList = Element{0x70, 0x7d} // list<u8>
	U64List  = Element{0x70, 0x77} // list<u64>
	BoolList = Element{0x70, 0x7f} // list<bool>
	Text     = Element{0x73}       // string
)

// AliasedLists returns a component with a list of count elements, which are themselves lists or strings of length zeros
// and all point at the same memory. It exports "lists", which returns the list, and "pass", which passes the list to
// the host rounds times: that calls Sink#Pass. The list takes 8 bytes an element.
func AliasedLists(element Element, count, length, rounds int) []byte {
	const pairs = 16 // the address of the list; the pointer to it and its length are at 0
	zeros := (pairs + 8*count + 15) &^ 15
	size := map[byte]int{0x77: 8}[element[len(element)-1]]
	pages := (zeros+max(1, size)*length)>>16 + 1
	data := make([]byte, pairs, zeros)
	binary.LittleEndian.PutUint32(data, pairs)
	binary.LittleEndian.PutUint32(data[4:], uint32(count))
	for range count {
		data = binary.LittleEndian.AppendUint32(data, uint32(zeros))
		data = binary.LittleEndian.AppendUint32(data, uint32(length))
	}
	name := func(s string) []byte { return sized([]byte(s)) }
	section := func(id byte, entries ...[]byte) []byte { return append([]byte{id}, sized(vector(entries...))...) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

	memory := join([]byte("\x00asm\x01\x00\x00\x00"),
		section(5, join([]byte{0}, number(pages))),
		section(7, join(name("m"), []byte{2, 0})),
		section(11, join([]byte{0, 0x41, 0, end}, sized(data))))
	// local 0 counts the rounds
	pass := join([]byte{1, 1, i32, 3, empty, 0x41}, signed(pairs), []byte{0x41}, signed(count), []byte{0x10, 0,
		0x20, 0, 0x41, 1, add, 0x22, 0, 0x41}, signed(rounds), []byte{0x49, 0x0d, 0, end, end})
	code := join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, funcType(2, 0), funcType(0, 1), funcType(0, 0)),
		section(2, join(name("h"), name(Pass), []byte{0, 0})),
		section(3, []byte{1}, []byte{2}),
		section(7, join(name("lists"), []byte{0, 1}), join(name("pass"), []byte{0, 2})),
		section(10, sized([]byte{0, 0x41, 0, end}), sized(pass)))

	isList := len(element) > 1
	list, function := []byte{0x70, 0x73}, byte(0) // list<string>
	types := [][]byte{list}
	if isList {
		types, function = [][]byte{element, {0x70, 0}}, 1
	}
	passType := join([]byte{0x40, 1}, name("v"), []byte{function, 1, 0})
	declarations := [][]byte{}
	for _, t := range append(types, passType) {
		declarations = append(declarations, join([]byte{1}, t))
	}
	declarations = append(declarations, join([]byte{4, 0}, name(Pass), []byte{1, function + 1}))
	listsType, runType := []byte{0x40, 0, 0, function}, []byte{0x40, 0, 1, 0}
	types = append(types, listsType, runType, join([]byte{0x42}, vector(declarations...)))
	lists, run, sink := function+1, function+2, function+3
	return join([]byte("\x00asm\x0d\x00\x01\x00"),
		section(7, types...),
		section(10, join([]byte{0}, name(Sink), []byte{5, sink})),
		append([]byte{1}, sized(memory)...), append([]byte{1}, sized(code)...),
		section(2, []byte{0, 0, 0}), // instantiate the memory
		section(6, join([]byte{0, 2, 1, 0}, name("m")), join([]byte{1, 0, 0}, name(Pass))), // core memory 0, function 0
		section(8, []byte{1, 0, 0, 1, 3, 0}),                                               // lower: core function 0
		section(2, join([]byte{1, 1}, name(Pass), []byte{0, 0}), join([]byte{0, 1, 1}, name("h"), []byte{0x12, 1})),
		section(6, join([]byte{0, 0, 1, 2}, name("lists")), join([]byte{0, 0, 1, 2}, name("pass"))),
		section(8, []byte{0, 0, 1, 1, 3, 0, lists}, []byte{0, 0, 2, 0, run}), // lift: functions 1 and 2
		section(11, join([]byte{0}, name("lists"), []byte{1, 1, 0}), join([]byte{0}, name("pass"), []byte{1, 2, 0})))
}

// signed encodes a constant of a signed type.
func signed(n int) (out []byte) {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

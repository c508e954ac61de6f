package guesttest

import (
	"bytes"
	"slices"

	"github.com/hako-run/hako/pdk/abi"
)

// Value types and some instructions of the binary format.
const (
	i32   = 0x7f
	end   = 0x0b
	add   = 0x6a
	drop  = 0x1a
	empty = 0x40
)

// Bomb is a small guest of ABI 1 that is costly to read or to compile: Wasm that no compiler makes.
type Bomb struct {
	// types are those after 0: i32 -> i32, and 1: () -> (). functions are those after the entry point and the marker, which are small.
	types     [][]byte
	functions []bombFunction
	// sections replaces whole sections, or adds them.
	sections map[byte][]byte
}

type bombFunction struct {
	kind int
	// locals are the declarations of locals with their number.
	locals, code []byte
}

func funcType(params, results int) []byte {
	return slices.Concat([]byte{0x60}, number(params), bytes.Repeat([]byte{i32}, params), number(results), bytes.Repeat([]byte{i32}, results))
}

func locals(n int) []byte { return slices.Concat([]byte{1}, number(n), []byte{i32}) }

func op(code byte, n int) []byte { return append([]byte{code}, number(n)...) }

func repeat(n int, part func(n int) []byte) []byte {
	var out []byte
	for i := range n {
		out = append(out, part(i)...)
	}
	return out
}

func times(n int, code ...byte) []byte { return bytes.Repeat(code, n) }

func vector(parts ...[]byte) []byte { return append(number(len(parts)), bytes.Join(parts, nil)...) }

// wasm assembles the guest.
func (b *Bomb) wasm() []byte {
	types := [][]byte{funcType(1, 1), funcType(0, 0)}
	kinds := [][]byte{{0}, {1}}
	codes := [][]byte{sized([]byte{0, 0x20, 0, end}), sized([]byte{0, end})}
	for _, f := range b.functions {
		kinds = append(kinds, number(f.kind))
		if f.locals == nil {
			f.locals = []byte{0}
		}
		codes = append(codes, sized(f.locals, f.code, []byte{end}))
	}
	exports := vector(slices.Concat(sized([]byte("memory")), []byte{2, 0}), slices.Concat(sized([]byte(abi.Entry)), []byte{0, 0}), slices.Concat(sized([]byte("hako_abi_1")), []byte{0, 1}))
	sections := map[byte][]byte{
		1: vector(append(types, b.types...)...), 3: vector(kinds...), 4: {1, 0x70, 0, 1}, 5: {1, 0, 1}, 7: exports, 10: vector(codes...),
	}
	for id, section := range b.sections {
		sections[id] = section
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		if section, ok := sections[id]; ok {
			out = append(append(out, id), sized(section)...)
		}
	}
	return out
}

// nestedLoops is a function of loops in each other, in the innermost of which all locals change.
func nestedLoops(loops, variables int) bombFunction {
	change := repeat(variables, func(n int) []byte {
		return slices.Concat(op(0x20, n), []byte{0x41, 1, add}, op(0x21, n))
	})
	return bombFunction{1, locals(variables), slices.Concat(times(loops, 3, empty), change, times(loops, 0x20, 0, 0x0d, 0, end))}
}

func one(kind int, locals, code []byte) []bombFunction { return []bombFunction{{kind, locals, code}} }

// much is the largest number of 32 bits.
const much = 1<<32 - 1

// Bombs are guests by what is wrong with them.
func Bombs() map[string][]byte {
	many := func(n int, f bombFunction) []bombFunction { return slices.Repeat([]bombFunction{f}, n) }
	list := map[string]*Bomb{
		"1,000 nested loops with 2,000 locals":               {functions: []bombFunction{nestedLoops(1000, 2000)}},
		"3,000 nested loops with 6,000 locals":               {functions: []bombFunction{nestedLoops(3000, 6000)}},
		"1,000 functions of 50 nested loops with 100 locals": {functions: many(1000, nestedLoops(50, 100))},
		"a br_table of a million targets":                    {functions: one(1, nil, slices.Concat([]byte{0x41, 0, 0x0e}, number(1_000_000), times(1_000_001, 0)))},
		"100 br_tables of 60,000 targets":                    {functions: one(1, nil, times1(100, slices.Concat([]byte{2, empty, 0x41, 0, 0x0e}, number(60_000), times(60_001, 0), []byte{end})))},
		"100,000 nested ifs":                                 {functions: one(1, nil, slices.Concat(times(100_000, 0x41, 0, 4, empty), times(100_000, end)))},
		"100,000 nested ifs with else":                       {functions: one(1, nil, slices.Concat(times(100_000, 0x41, 0, 4, empty), times(100_000, 5, end)))},
		"100,000 nested blocks":                              {functions: one(1, nil, slices.Concat(times(100_000, 2, empty), times(100_000, end)))},
		"10,000 ifs beside each other with 5,000 locals": {functions: one(1, locals(5000), repeat(10_000, func(n int) []byte {
			return slices.Concat([]byte{0x41, 0, 4, empty, 0x41, 1}, op(0x21, n%5000), []byte{end})
		}))},
		"10,000 calls with 1,000 params": {types: [][]byte{funcType(1000, 0)}, functions: append(one(2, nil, nil),
			bombFunction{1, nil, times1(10_000, append(times(1000, 0x41, 0), 0x10, 2))})},
		"a function of 50,000 params":         {types: [][]byte{funcType(50_000, 0)}, functions: one(2, nil, nil)},
		"a function of 50,000 results":        {types: [][]byte{funcType(0, 50_000)}, functions: one(2, nil, times(50_000, 0x41, 0))},
		"1,000 nested blocks of 1,000 values": {types: [][]byte{funcType(1000, 1000)}, functions: one(1, nil, slices.Concat(times(1000, 0x41, 0), times(1000, 2, 2), times(1000, end), times(1000, drop)))},
		"1,000 nested loops of 1,000 values":  {types: [][]byte{funcType(1000, 1000)}, functions: one(1, nil, slices.Concat(times(1000, 0x41, 0), times(1000, 3, 2), times(1000, 0x41, 0, 0x0d, 0, end), times(1000, drop)))},
		"100,000 branches with 1,000 values":  {types: [][]byte{funcType(1000, 1000)}, functions: one(1, nil, slices.Concat(times(1000, 0x41, 0), []byte{2, 2}, times(100_000, 0x41, 0, 0x0d, 0), []byte{end}, times(1000, drop)))},
		"br_tables of 10,000 targets with 1,000 values": {types: [][]byte{funcType(1000, 1000)}, functions: one(1, nil, slices.Concat(times(1000, 0x41, 0), []byte{2, 2},
			times(1000, 0x41, 0), []byte{0x41, 0, 0x0e}, number(10_000), times(10_001, 0), []byte{end}, times(1000, drop)))},
		"a stack of a million values":      {functions: one(1, nil, slices.Concat(times(1_000_000, 0x41, 0), times(1_000_000, drop)))},
		"a sum of a million numbers":       {functions: one(1, nil, slices.Concat(times(1_000_000, 0x20, 0), times(999_999, add), []byte{drop}))},
		"a sum of a million locals":        {functions: one(1, locals(1), slices.Concat(times(1_000_000, 0x20, 0), times(999_999, add), []byte{drop}))},
		"a million selects":                {functions: one(1, locals(1), slices.Concat([]byte{0x41, 0}, times(1_000_000, 0x20, 0, 0x20, 0, 0x1b), []byte{drop}))},
		"4,294,967,295 locals":             {functions: one(1, locals(much), nil)},
		"500,000 declarations of locals":   {functions: one(1, slices.Concat(number(500_000), times(500_000, 1, i32)), nil)},
		"1,000 functions of 50,000 locals": {functions: many(1000, bombFunction{1, locals(50_000), nil})},
		"a million functions":              {functions: many(1_000_000, bombFunction{1, nil, nil})},
		"8 MB of calls":                    {functions: one(1, nil, times(4_000_000, 0x10, 1))},
		"8 MB of calls in 100 functions":   {functions: many(100, bombFunction{1, nil, times(40_000, 0x10, 1)})},
		"30 MB of numbers":                 {functions: many(10, bombFunction{1, nil, times(1_000_000, 0x41, 0, drop)})},
		"20 MB of memory.grow":             {functions: many(10, bombFunction{1, nil, times(400_000, 0x41, 0, 0x40, 0, drop)})},
		"10 MB of memory.copy":             {functions: many(10, bombFunction{1, nil, times(100_000, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0)})},
		"a million globals":                {sections: map[byte][]byte{6: slices.Concat(number(1_000_000), times(1_000_000, i32, 1, 0x41, 0, end))}},
		"a million types":                  {types: slices.Repeat([][]byte{funcType(0, 0)}, 1_000_000)},
		"10,000 types of 1,000 params":     {types: slices.Repeat([][]byte{funcType(1000, 0)}, 10_000)},
		"a million exports": {sections: map[byte][]byte{7: slices.Concat(number(1_000_003), exportsOf(), repeat(1_000_000, func(n int) []byte {
			return slices.Concat([]byte{4}, []byte{byte('a' + n%16), byte('a' + n>>4%16), byte('a' + n>>8%64), byte('!' + n>>14%64)}, []byte{0, 1})
		}))}},
		"a million elements":         {sections: map[byte][]byte{9: slices.Concat([]byte{1, 1, 0}, number(1_000_000), times(1_000_000, 1))}},
		"a million element segments": {sections: map[byte][]byte{9: slices.Concat(number(1_000_000), times(1_000_000, 1, 0, 0))}},
		"a million data segments":    {sections: map[byte][]byte{11: slices.Concat(number(1_000_000), times(1_000_000, 1, 0))}},
		"100,000 tables":             {sections: map[byte][]byte{4: slices.Concat(number(100_000), times(100_000, 0x70, 0, 1))}},
		"a name of 16 MB":            {sections: map[byte][]byte{7: slices.Concat([]byte{4}, exportsOf(), sized(times(16<<20, 'x')), []byte{0, 1})}},
	}
	for id, what := range map[byte]string{1: "types", 2: "imports", 3: "functions", 4: "tables", 6: "globals", 7: "exports", 9: "element segments", 10: "codes", 11: "data segments"} {
		list["4,294,967,295 "+what+" in five bytes"] = &Bomb{sections: map[byte][]byte{id: number(much)}}
	}
	list["a body of 4,294,967,295 bytes"] = &Bomb{sections: map[byte][]byte{10: slices.Concat([]byte{2, 4, 0, 0x20, 0, end}, number(much), []byte{0, end})}}
	list["4,294,967,295 elements in five bytes"] = &Bomb{sections: map[byte][]byte{9: slices.Concat([]byte{1, 1, 0}, number(much))}}
	list["4,294,967,295 bytes of data in five"] = &Bomb{sections: map[byte][]byte{11: slices.Concat([]byte{1, 1}, number(much))}}
	list["a type of 4,294,967,295 params in five bytes"] = &Bomb{sections: map[byte][]byte{1: slices.Concat([]byte{3}, funcType(1, 1), funcType(0, 0), []byte{0x60}, number(much))}}
	list["a br_table of 4,294,967,295 targets in five bytes"] = &Bomb{functions: one(1, nil, slices.Concat([]byte{0x41, 0, 0x0e}, number(much)))}
	list["a select of 4,294,967,295 types in five bytes"] = &Bomb{functions: one(1, nil, slices.Concat([]byte{0x1c}, number(much)))}
	wasm := map[string][]byte{}
	for name, bomb := range list {
		wasm[name] = bomb.wasm()
	}
	return wasm
}

func times1(n int, code []byte) []byte { return bytes.Repeat(code, n) }

func exportsOf() []byte {
	return slices.Concat(sized([]byte("memory")), []byte{2, 0}, sized([]byte(abi.Entry)), []byte{0, 0}, sized([]byte("hako_abi_1")), []byte{0, 1})
}

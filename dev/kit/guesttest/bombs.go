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

// bomb is a small guest of ABI 1 that is costly to read or to compile, unlike code that compilers generate.
type bomb struct {
	// types follow 0: i32 -> i32, and 1: () -> (). functions follow the entry point and the marker.
	types     [][]byte
	functions []bombFunction
	// sections replaces or adds whole sections.
	sections map[byte][]byte
}

type bombFunction struct {
	kind int
	// locals are the declarations of locals, preceded by their number.
	locals, code []byte
}

func funcType(params, results int) []byte {
	return slices.Concat([]byte{0x60}, number(params), bytes.Repeat([]byte{i32}, params), number(results),
		bytes.Repeat([]byte{i32}, results))
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

// bombExports are the exports that ABI 1 requires.
var bombExports = slices.Concat(sized([]byte("memory")), []byte{2, 0}, sized([]byte(abi.Entry)), []byte{0, 0},
	sized([]byte(abi.Marker)), []byte{0, 1})

func (b *bomb) wasm() []byte {
	types := [][]byte{funcType(1, 1), funcType(0, 0)}
	kinds := [][]byte{{0}, {1}}
	codes := [][]byte{sized([]byte{0, 0x41, 0, end}), sized([]byte{0, end})}
	for _, f := range b.functions {
		kinds = append(kinds, number(f.kind))
		if f.locals == nil {
			f.locals = []byte{0}
		}
		codes = append(codes, sized(f.locals, f.code, []byte{end}))
	}
	exports := slices.Concat([]byte{3}, bombExports)
	sections := map[byte][]byte{
		1: vector(append(types, b.types...)...), 3: vector(kinds...), 4: {1, 0x70, 0, 1}, 5: {1, 0,
			1}, 7: exports, 10: vector(codes...),
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

// nestedLoops returns a function of nested loops; the innermost changes all locals.
func nestedLoops(loops, variables int) bombFunction {
	change := repeat(variables, func(n int) []byte {
		return slices.Concat(op(0x20, n), []byte{0x41, 1, add}, op(0x21, n))
	})
	return bombFunction{1, locals(variables),
		slices.Concat(times(loops, 3, empty), change, times(loops, 0x20, 0, 0x0d, 0, end))}
}

func one(kind int, locals, code []byte) []bombFunction { return []bombFunction{{kind, locals, code}} }

func many(n int, f bombFunction) []bombFunction { return slices.Repeat([]bombFunction{f}, n) }

// much is the largest number of 32 bits.
const much = 1<<32 - 1

// Bombs returns guests within the limits of modules that are costly for a compiler or an interpreter.
func Bombs() map[string]func() []byte {
	list := map[string]func() *bomb{
		// For the compiler.
		"1,000 nested loops with 2,000 locals": func() *bomb {
			return &bomb{functions: []bombFunction{nestedLoops(1000,
				2000)}}
		},
		"3,000 nested loops with 6,000 locals": func() *bomb {
			return &bomb{functions: []bombFunction{nestedLoops(3000,
				6000)}}
		},
		"1,000 functions of 50 nested loops with 100 locals": func() *bomb {
			return &bomb{functions: many(1000,
				nestedLoops(50, 100))}
		},
		"100 br_tables of 60,000 targets": func() *bomb {
			table := slices.Concat([]byte{2, empty, 0x41, 0, 0x0e}, number(60_000), times(60_001, 0), []byte{end})
			return &bomb{functions: one(1, nil, bytes.Repeat(table, 100))}
		},
		"19,000 nested ifs": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(times(19_000, 0x41, 0, 4, empty), times(19_000, end)))}
		},
		"100 functions of 19,000 nested ifs with else": func() *bomb {
			return &bomb{functions: many(100,
				bombFunction{1, nil, slices.Concat(times(19_000, 0x41, 0, 4, empty), times(19_000, 5, end))})}
		},
		"19,000 nested blocks": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(times(19_000, 2, empty), times(19_000, end)))}
		},
		"10,000 ifs beside each other with 5,000 locals": func() *bomb {
			return &bomb{functions: one(1, locals(5000), repeat(10_000, func(n int) []byte {
				return slices.Concat([]byte{0x41, 0, 4, empty, 0x41, 1}, op(0x21, n%5000), []byte{end})
			}))}
		},
		"100 functions of 10,000 ifs with 5,000 locals": func() *bomb {
			return &bomb{functions: many(100, bombFunction{1, locals(5000), repeat(10_000, func(n int) []byte {
				return slices.Concat([]byte{0x41, 0, 4, empty, 0x41, 1}, op(0x21, n%5000), []byte{end})
			})})}
		},
		"10,000 calls with 250 params": func() *bomb {
			return &bomb{types: [][]byte{funcType(250, 0)}, functions: append(one(2, nil, nil),
				bombFunction{1, nil, bytes.Repeat(append(times(250, 0x41, 0), 0x10, 2), 10_000)})}
		},
		"10 nested loops of 250 values": func() *bomb {
			return &bomb{types: [][]byte{funcType(250, 250)}, functions: one(1, nil,
				slices.Concat(times(250, 0x41, 0), times(10, 3, 2), times(10, 0x41, 0, 0x0d, 0, end),
					times(250, drop)))}
		},
		"8 MB of calls in 100 functions": func() *bomb {
			return &bomb{functions: many(100,
				bombFunction{1, nil, times(40_000, 0x10, 1)})}
		},
		"7 MB of calls in one function": func() *bomb {
			return &bomb{functions: one(1, nil,
				times(3_500_000, 0x10, 1))}
		},
		"100 br_tables in 1,000 nested blocks": func() *bomb {
			table := slices.Concat([]byte{2, empty, 0x41, 0, 0x0e}, number(1000), repeat(1001, number), []byte{end})
			return &bomb{functions: one(1, nil, slices.Concat(times(1000, 2, empty), bytes.Repeat(table, 100),
				times(1000, end)))}
		},
		"500 loops in each other and 500 after each other": func() *bomb {
			chain := bytes.Repeat(slices.Concat([]byte{3, empty}, repeat(500, func(n int) []byte {
				return slices.Concat(op(0x20, n), op(0x21, 499-n))
			}), []byte{0x20, 0, 0x0d, 0, end}), 500)
			return &bomb{functions: one(1, locals(500), slices.Concat(times(500, 3, empty), chain,
				times(500, 0x20, 0, 0x0d, 0, end)))}
		},
		"900,000 indirect calls": func() *bomb {
			return &bomb{functions: one(1, nil, times(900_000, 0x41, 0, 0x11, 1, 0))}
		},
		"200,000 constants of 16 bytes": func() *bomb {
			return &bomb{functions: one(1, nil, repeat(200_000, func(n int) []byte {
				return append([]byte{0xfd, 12, byte(n), byte(n >> 8), byte(n >> 16)}, append(make([]byte, 13), drop)...)
			}))}
		},
		"a million selects": func() *bomb {
			return &bomb{functions: one(1, locals(1),
				slices.Concat([]byte{0x41, 0}, times(1_000_000, 0x20, 0, 0x20, 0, 0x1b), []byte{drop}))}
		},
		// For the interpreter.
		"a stack of a million values": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(times(1_000_000, 0x41, 0), times(1_000_000, drop)))}
		},
		"a sum of a million locals": func() *bomb {
			return &bomb{functions: one(1, locals(1),
				slices.Concat(times(1_000_000, 0x20, 0), times(999_999, add), []byte{drop}))}
		},
		"30 MB of numbers": func() *bomb {
			return &bomb{functions: many(10,
				bombFunction{1, nil, times(1_000_000, 0x41, 0, drop)})}
		},
		"20 MB of memory.grow": func() *bomb {
			return &bomb{functions: many(10, bombFunction{1, nil, times(400_000, 0x41, 0, 0x40, 0, drop)})}
		},
		"10 MB of memory.copy": func() *bomb {
			return &bomb{functions: many(10, bombFunction{1, nil,
				times(100_000, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0)})}
		},
		"20 functions of 49,000 locals": func() *bomb {
			return &bomb{functions: many(20,
				bombFunction{1, locals(49_000), nil})}
		},
		"190,000 functions": func() *bomb { return &bomb{functions: many(190_000, bombFunction{1, nil, nil})} },
		"9,000 globals": func() *bomb {
			return &bomb{sections: map[byte][]byte{6: slices.Concat(number(9000), times(9000, i32, 1, 0x41, 0, end))}}
		},
		"a million elements": func() *bomb {
			return &bomb{sections: map[byte][]byte{9: slices.Concat([]byte{1, 1, 0}, number(1_000_000),
				times(1_000_000, 1))}}
		},
	}
	return assemble(list)
}

// Oversized returns guests that exceed a limit of modules or announce more than they contain.
func Oversized() map[string]func() []byte {
	list := map[string]func() *bomb{
		"a br_table of a million targets": func() *bomb {
			return &bomb{functions: one(1, nil,
				slices.Concat([]byte{0x41, 0, 0x0e}, number(1_000_000), times(1_000_001, 0)))}
		},
		"100,000 nested ifs": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(times(100_000, 0x41, 0, 4, empty), times(100_000, end)))}
		},
		"100,000 nested blocks": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(times(100_000, 2, empty), times(100_000, end)))}
		},
		"a function of 50,000 params": func() *bomb {
			return &bomb{types: [][]byte{funcType(50_000, 0)},
				functions: one(2, nil, nil)}
		},
		"a function of 50,000 results": func() *bomb {
			return &bomb{types: [][]byte{funcType(0, 50_000)}, functions: one(2, nil, times(50_000, 0x41, 0))}
		},
		"10,000 types of 250 params": func() *bomb {
			return &bomb{types: slices.Repeat([][]byte{funcType(250, 0)},
				9_000)}
		},
		"a million types": func() *bomb { return &bomb{types: slices.Repeat([][]byte{funcType(0, 0)}, 1_000_000)} },
		"1,000 nested loops of 250 values": func() *bomb {
			return &bomb{types: [][]byte{funcType(250, 250)}, functions: one(1, nil,
				slices.Concat(times(250, 0x41, 0), times(1000, 3, 2), times(1000, 0x41, 0, 0x0d, 0, end),
					times(250, drop)))}
		},
		"100,000 branches with 250 values": func() *bomb {
			return &bomb{types: [][]byte{funcType(250, 250)}, functions: one(1, nil,
				slices.Concat(times(250, 0x41, 0), []byte{2, 2}, times(100_000, 0x41, 0, 0x0d, 0), []byte{end},
					times(250, drop)))}
		},
		"a br_table of 10,000 targets with 250 values": func() *bomb {
			return &bomb{types: [][]byte{funcType(250, 250)},
				functions: one(1, nil, slices.Concat(times(250, 0x41, 0), []byte{2, 2},
					[]byte{0x41, 0, 0x0e}, number(10_000), times(10_001, 0), []byte{end}, times(250, drop)))}
		},
		"a million calls of a function with 250 results": func() *bomb {
			return &bomb{types: [][]byte{funcType(0, 250)},
				functions: append(one(2, nil, times(250, 0x41, 0)), bombFunction{1, nil, times(1_000_000, 0x10, 2)})}
		},
		"4,294,967,295 locals": func() *bomb { return &bomb{functions: one(1, locals(much), nil)} },
		"500,000 declarations of locals": func() *bomb {
			return &bomb{functions: one(1, slices.Concat(number(500_000), times(500_000, 1, i32)), nil)}
		},
		"1,000 functions of 50,000 locals": func() *bomb {
			return &bomb{functions: many(1000,
				bombFunction{1, locals(50_000), nil})}
		},
		"a million functions": func() *bomb { return &bomb{functions: many(1_000_000, bombFunction{1, nil, nil})} },
		"a function of 8 MB":  func() *bomb { return &bomb{functions: one(1, nil, times(4_000_000, 0x10, 1))} },
		"a million globals": func() *bomb {
			return &bomb{sections: map[byte][]byte{6: slices.Concat(number(1_000_000),
				times(1_000_000, i32, 1, 0x41, 0, end))}}
		},
		"a global of a million instructions": func() *bomb {
			return &bomb{sections: map[byte][]byte{6: slices.Concat([]byte{1, i32, 0}, times(1_000_000, 0x41, 0, drop),
				[]byte{end})}}
		},
		"a million exports": func() *bomb {
			return &bomb{sections: map[byte][]byte{7: slices.Concat(number(1_000_003), bombExports,
				repeat(1_000_000, func(n int) []byte {
					return []byte{4, byte('a' + n%16), byte('a' + n>>4%16), byte('0' + n>>8%64), byte('0' + n>>14%64),
						0, 1}
				}))}}
		},
		"a million element segments": func() *bomb {
			return &bomb{sections: map[byte][]byte{9: slices.Concat(number(1_000_000), times(1_000_000, 1, 0, 0))}}
		},
		"a million data segments": func() *bomb {
			return &bomb{sections: map[byte][]byte{11: slices.Concat(number(1_000_000), times(1_000_000, 1, 0))}}
		},
		"100,000 tables": func() *bomb {
			return &bomb{sections: map[byte][]byte{4: slices.Concat(number(100_000), times(100_000, 0x70, 0, 1))}}
		},
		"a table of 4,294,967,295 elements": section(4, []byte{1, 0x70, 0}, number(much)),
		"100 tables of a million elements": section(4, []byte{100},
			bytes.Repeat(slices.Concat([]byte{0x70, 0}, number(1<<20)), 100)),
		"a table that starts above its maximum":  section(4, []byte{1, 0x70, 1, 2, 1}),
		"a memory that starts above its maximum": section(5, []byte{1, 1, 2, 1}),
		"a memory of 65,537 pages":               section(5, []byte{1, 0}, number(65_537)),
		"a memory that grows to 65,537 pages":    section(5, []byte{1, 1, 1}, number(65_537)),
		"an export twice":                        section(7, []byte{4}, bombExports, sized([]byte("memory")), []byte{0, 1}),
		"an export with the name of the fuel":    section(7, []byte{4}, bombExports, sized([]byte("hako_fuel")), []byte{0, 1}),
		"two memories":                           func() *bomb { return &bomb{sections: map[byte][]byte{5: {2, 0, 1, 0, 1}}} },
		"an imported and a defined memory": func() *bomb {
			return &bomb{sections: map[byte][]byte{2: {1, 1, 'a', 1, 'b', 2, 0, 1}, 5: {1, 0, 1}}}
		},
		"memory of 64 bits": func() *bomb { return &bomb{sections: map[byte][]byte{5: {1, 4, 1}}} },
		"a name of 16 MB": func() *bomb {
			return &bomb{sections: map[byte][]byte{7: slices.Concat([]byte{4}, bombExports, sized(times(16<<20, 'x')),
				[]byte{0, 1})}}
		},
		"a body of 4,294,967,295 bytes": section(10, []byte{2, 4, 0, 0x20, 0, end}, number(much),
			[]byte{0, end}),
		"4,294,967,295 elements in five bytes": section(9, []byte{1, 1, 0}, number(much)),
		"4,294,967,295 bytes of data in five":  section(11, []byte{1, 1}, number(much)),
		"a type of 4,294,967,295 params in five bytes": section(1, []byte{3}, funcType(1, 1), funcType(0, 0),
			[]byte{0x60}, number(much)),
		"a br_table of 4,294,967,295 targets in five bytes": func() *bomb {
			return &bomb{functions: one(1, nil,
				slices.Concat([]byte{0x41, 0, 0x0e}, number(much)))}
		},
		"a select of 4,294,967,295 types in five bytes": func() *bomb {
			return &bomb{functions: one(1, nil,
				slices.Concat([]byte{0x1c}, number(much)))}
		},
	}
	for id, what := range map[byte]string{1: "types", 2: "imports", 3: "functions", 4: "tables", 6: "globals",
		7: "exports", 9: "element segments", 10: "codes", 11: "data segments"} {
		list["4,294,967,295 "+what+" in five bytes"] = section(id, number(much))
	}
	return assemble(list)
}

// Invalid returns guests that can be read and not be run: whether code is valid is found out when it is compiled, and
// other faults when it is instantiated.
func Invalid() map[string]func() []byte {
	return assemble(map[string]func() *bomb{
		"code of the wrong types":       func() *bomb { return &bomb{functions: one(1, nil, []byte{0x42, 0, 0x45, drop})} },
		"a call of an unknown function": func() *bomb { return &bomb{functions: one(1, nil, op(0x10, 1000))} },
		"an unknown local": func() *bomb {
			return &bomb{functions: one(1, nil, slices.Concat(op(0x20, 7), []byte{drop}))}
		},
		"a branch out of the function": func() *bomb { return &bomb{functions: one(1, nil, op(0x0c, 9))} },
		"a missing table": func() *bomb {
			return &bomb{sections: map[byte][]byte{4: {0}, 9: {1, 0, 0x41, 0, end, 1, 0}}}
		},
		"a missing memory": func() *bomb {
			return &bomb{sections: map[byte][]byte{5: {0}, 7: {0}, 11: {1, 0, 0x41, 0, end, 0}}}
		},
		"a global of the wrong type":    section(6, []byte{1, i32, 0, 0x42, 0, end}),
		"an export of nothing":          section(7, []byte{4}, bombExports, sized([]byte("g")), []byte{3, 9}),
		"a start function with results": section(8, []byte{0}),
		"an unknown start function":     section(8, number(1000)),
		"an unknown element":            section(9, []byte{1, 0, 0x41, 0, end, 1}, number(1000)),
		"elements beyond the table":     section(9, []byte{1, 0, 0x41, 5, end, 1, 0}),
		"data beyond the memory":        section(11, []byte{1, 0, 0x41}, signed(1<<16), []byte{end, 1, 0}),
		"a start function that traps": func() *bomb {
			return &bomb{functions: one(1, nil, []byte{0}), sections: map[byte][]byte{8: {2}}}
		},
		"a start function that never ends": func() *bomb {
			return &bomb{functions: one(1, nil, []byte{3, empty, 0x0c, 0, end}), sections: map[byte][]byte{8: {2}}}
		},
		"4 GiB of memory": section(5, []byte{1, 0}, number(65_536)),
	})
}

func assemble(list map[string]func() *bomb) map[string]func() []byte {
	wasm := map[string]func() []byte{}
	for name, make := range list {
		wasm[name] = func() []byte { return make().wasm() }
	}
	return wasm
}

// section returns a bomb with a replaced or additional section.
func section(id byte, parts ...[]byte) func() *bomb {
	return func() *bomb { return &bomb{sections: map[byte][]byte{id: slices.Concat(parts...)}} }
}

package rewrite

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Check reads a whole module and returns an error if it exceeds a limit, is malformed or uses a feature that is not
// supported. It must come before the other functions of this package and the runtime read the module. It allocates
// nothing for sizes that the module merely announces, and checks no types: the runtime does.
func Check(module []byte) (err error) {
	defer wasmbin.Catch(&err)
	c := &checker{sections: splitSections(module)}
	c.checkTypes()
	c.checkImports()
	c.checkFunctions()
	c.checkTables()
	c.checkMemories()
	c.checkGlobals()
	c.checkExports()
	c.checkElements()
	c.checkCode()
	c.checkData()
	return nil
}

// checker checks the sections in order.
type checker struct {
	sections map[byte]*reader
	types    []signature
	// functions has the type index of each function, imported ones first.
	functions []uint32
	imported  int
	// memories counts the imported ones.
	memories int
	// values counts parameters and results of all types, locals those of all functions.
	values, locals int
	// elements are those with which its own tables start.
	elements uint64
	// blocks has, for each open block of a function, how many values a branch to it carries.
	blocks []int
}

// signature is the number of parameters and results of a type.
type signature struct{ params, results int }

// each checks a section: the number of entries, each of at least size bytes, and each entry.
func (c *checker) each(id byte, what string, limit, size int, entry func(*reader)) {
	r, ok := c.sections[id]
	if !ok {
		return
	}
	for range count(r, what, limit, size) {
		entry(r)
	}
	if !r.Done() {
		r.Fail("section %d has data after its entries", id)
	}
}

// count reads a number of entries, each of at least size bytes, and checks that there is room for them.
func count(r *reader, what string, limit, size int) int {
	start := r.Pos
	n := r.Uint32()
	checkLimit(what, n, limit)
	if left := len(r.Rest()); int(n) > left/size {
		r.FailAt(start, "unexpected end: %d %s, and %d bytes are left", n, what, left)
	}
	return int(n)
}

func (c *checker) checkTypes() {
	c.each(wasmbin.TypeSection, "types", maxTypes, 3, func(r *reader) {
		if form := r.Peek(); form != wasmbin.FuncType {
			r.Fail("it has a type of form %#x, which is not supported: build without the GC proposal", form)
		}
		r.Byte()
		s := signature{values(r, "parameters of a function"), values(r, "results of a function")}
		c.values += s.values()
		checkLimit("parameters and results of functions", c.values, maxAllValues)
		c.types = append(c.types, s)
	})
}

func values(r *reader, what string) int { return len(r.Next(count(r, what, maxValues, 1))) }

func (c *checker) checkImports() {
	c.each(wasmbin.ImportSection, "imports", maxImports, 4, func(r *reader) {
		r.Name()
		checkName("imports", r.Name())
		switch kind := r.Byte(); kind {
		case kindFunction:
			c.imported++
			c.checkFunctionType(r)
		case kindTable:
			checkTable(r)
		case kindMemory:
			checkMemory(r)
			c.memories++
		case kindGlobal:
			r.Next(2)
		default:
			wasmbin.Throw(&UnsupportedError{fmt.Sprintf("import of kind %d", kind)})
		}
	})
}

// checkName refuses names that a rewritten module may add.
func checkName(verb, name string) {
	if Reserved(name) {
		wasmbin.Throw(fmt.Errorf("it %s %q, a name that is reserved: rename it", verb, name))
	}
}

// limits reads the sizes of a memory or table.
func limits(r *reader) wasmbin.Limits {
	start := r.Pos
	l := r.Limits()
	if l.Flags&^wasmbin.LimitsMax != 0 {
		wasmbin.Throw(&UnsupportedError{fmt.Sprintf("limits of kind %d", l.Flags)})
	}
	if l.Flags&wasmbin.LimitsMax != 0 && l.Min > l.Max {
		r.FailAt(start, "a memory or table starts with the size %d and may have %d", l.Min, l.Max)
	}
	return l
}

// checkTable checks a table type and returns the number of elements with which the table starts.
func checkTable(r *reader) uint64 {
	r.Byte()
	return limits(r).Min
}

func checkMemory(r *reader) {
	l := limits(r)
	checkLimit("pages in a memory", max(l.Min, l.Max), maxPages)
}

func (c *checker) checkFunctionType(r *reader) {
	index := r.Uint32()
	if uint64(index) >= uint64(len(c.types)) {
		r.Fail("function %d has the unknown type %d", len(c.functions), index)
	}
	c.functions = append(c.functions, index)
}

func (c *checker) checkFunctions() {
	c.each(wasmbin.FunctionSection, "functions", maxFunctions, 1, c.checkFunctionType)
}

func (c *checker) checkTables() {
	c.each(wasmbin.TableSection, "tables", maxTables, 3, func(r *reader) {
		c.elements += checkTable(r)
		checkLimit("elements in its tables", c.elements, MaxElements)
	})
}

func (c *checker) checkMemories() {
	c.each(wasmbin.MemorySection, "memories", 1, 2, func(r *reader) {
		checkMemory(r)
		c.memories++
	})
	checkLimit("memories", c.memories, 1)
}

func (c *checker) checkGlobals() {
	c.each(wasmbin.GlobalSection, "globals", maxGlobals, 4, func(r *reader) {
		r.Next(2)
		skipConstant(r)
	})
}

func skipConstant(r *reader) {
	for start := r.Pos; ; {
		op := r.Byte()
		if op == opEnd {
			return
		}
		skipImmediates(r, op)
		checkLimit("bytes in a constant expression", r.Pos-start, maxConstant)
	}
}

func (c *checker) checkExports() {
	names := map[string]bool{}
	c.each(wasmbin.ExportSection, "exports", maxExports, 3, func(r *reader) {
		name := r.Name()
		checkName("exports", name)
		if names[name] {
			r.Fail("it exports %q twice", name)
		}
		names[name] = true
		r.Byte()
		r.Uint32()
	})
}

func (c *checker) checkElements() {
	total := 0
	c.each(wasmbin.ElementSection, "element segments", maxSegments, 3, func(r *reader) {
		total += skipElement(r)
		checkLimit("elements in segments", total, MaxElements)
	})
}

// skipElement skips a segment and returns its number of elements.
func skipElement(r *reader) int {
	flags := r.Uint32()
	if flags > 7 {
		wasmbin.Throw(&UnsupportedError{fmt.Sprintf("element segment of kind %d", flags)})
	}
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			r.Uint32() // table
		}
		skipConstant(r)
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		r.Byte() // element kind or reference type
	}
	n := count(r, "elements in a segment", MaxElements, 1)
	for range n {
		if flags&elementExpressions == 0 {
			r.Uint32()
		} else {
			skipConstant(r)
		}
	}
	return n
}

func (c *checker) checkData() {
	c.each(wasmbin.DataSection, "data segments", maxSegments, 2, func(r *reader) {
		flags := r.Uint32()
		if flags == 2 {
			r.Uint32() // memory
		}
		if flags != 1 {
			skipConstant(r)
		}
		r.Bytes()
	})
}

func (c *checker) checkCode() {
	n, own := 0, len(c.functions)-c.imported
	c.each(wasmbin.CodeSection, "functions", maxFunctions, 3, func(r *reader) {
		if n == own { // the runtime refuses too few
			r.Fail("it announces %d functions and has the code of more", own)
		}
		body := r.Section()
		checkLimit("bytes in a function", len(body.Rest()), maxBody)
		if err := c.checkBody(body, c.types[c.functions[c.imported+n]]); err != nil {
			wasmbin.Throw(fmt.Errorf("function %d: %w", c.imported+n, err))
		}
		n++
	})
}

// movedSlack and movedPerByte bound the values that blocks, branches and calls of a function move because of their
// types. A few bytes of code could move hundreds each otherwise. Real code has pushed most of them with instructions of
// its own.
const (
	movedSlack   = 10_000
	movedPerByte = 4
)

func (c *checker) checkBody(r *reader, s signature) (err error) {
	defer wasmbin.Catch(&err)
	size := len(r.Rest())
	c.locals += countLocals(r, s.params)
	checkLimit("locals in all its functions", c.locals, maxAllLocals)
	c.blocks = append(c.blocks[:0], s.results)
	moved := 0
	for len(c.blocks) > 0 {
		op := r.Byte()
		switch { // fast path for most instructions
		case op >= opI32Eqz && op <= opI64Extend32S:
			continue
		case op >= opLocalGet && op <= opTableSet:
			r.Uint32()
			continue
		case op == opI32Const:
			r.Signed(32)
			continue
		}
		immediates := *r
		skipImmediates(r, op)
		switch op {
		case opBlock, opLoop, opIf:
			s := c.blockType(immediates.Signed(33))
			carried := s.results
			if op == opLoop {
				carried = s.params
			}
			c.blocks = append(c.blocks, carried)
			checkLimit("blocks in each other", len(c.blocks), maxNesting)
			moved += s.params + s.results
		case opEnd:
			c.blocks = c.blocks[:len(c.blocks)-1]
		case opBr, opBrIf:
			moved += c.branchValues(immediates.Uint32())
		case opBrTable:
			n := immediates.Uint32()
			checkLimit("targets in a br_table", n, maxTargets)
			for range n + 1 {
				moved += c.branchValues(immediates.Uint32())
			}
		case opCall, opReturnCall:
			if index := immediates.Uint32(); uint64(index) < uint64(len(c.functions)) {
				moved += c.types[c.functions[index]].values()
			}
		case opCallIndirect, opReturnCallIndirect:
			if index := immediates.Uint32(); uint64(index) < uint64(len(c.types)) {
				moved += c.types[index].values()
			}
		}
	}
	r.Finish("a function")
	checkLimit("values that its blocks, branches and calls move", moved, movedSlack+movedPerByte*size)
	return nil
}

func (s signature) values() int { return s.params + s.results }

// blockType returns the signature of a block type.
func (c *checker) blockType(number int64) signature {
	switch {
	case number < 0 && number&0x7f == noResult:
		return signature{}
	case number < 0:
		return signature{results: 1}
	case number < int64(len(c.types)):
		return c.types[number]
	}
	return signature{}
}

// branchValues returns how many values a branch to the block at this depth carries.
func (c *checker) branchValues(depth uint32) int {
	if uint64(depth) >= uint64(len(c.blocks)) {
		return 0
	}
	return c.blocks[len(c.blocks)-1-int(depth)]
}

// countLocals reads the declarations of locals and returns the number of locals and parameters.
func countLocals(r *reader, params int) int {
	total := uint64(params)
	for range count(r, "declarations of locals", maxLocals, 2) {
		total += uint64(r.Uint32())
		checkLimit("locals in a function", total, maxLocals)
		r.Byte()
	}
	return int(total)
}

package rewrite

import "fmt"

// Limits of a module. They bound the memory and time for reading, validating and interpreting it by a multiple of its
// size. The compiler has no such limits and therefore runs in a process of its own. Limits without a comment are about
// ten times the highest value known of real plugins (Go, Rust, C, AssemblyScript, QuickJS, CPython).
const (
	maxTypes     = 10_000
	maxValues    = 255 // parameters, or results, of a type
	maxImports   = 10_000
	maxFunctions = 200_000
	maxTables    = 100
	maxGlobals   = 10_000
	maxExports   = 10_000
	maxSegments  = 100_000 // of elements, of data: as in browsers
	maxCustom    = 1_000
	maxName      = 10_000    // bytes
	maxBody      = 7_654_321 // bytes of a function: as in browsers
	maxLocals    = 50_000    // of a function with its parameters: as in browsers
	maxTargets   = 65_520    // of a br_table: as in browsers
	maxNesting   = 20_000    // of blocks: the Go compiler opens one for each part of a function
	maxConstant  = 32        // bytes of a constant expression

	// Sums over a module.
	maxAllValues = 100_000   // parameters and results of all types
	maxAllLocals = 1_000_000 // of all functions: the runtime keeps each

	// Counting may make the code maxGrowth times as large plus growthSlack. That of compilers grows by a tenth.
	maxGrowth   = 2
	growthSlack = 1 << 20
)

// LimitError says which limit a module exceeds.
type LimitError struct {
	// What says what is counted: the module has Count of it and may have Limit.
	What         string
	Count, Limit uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("it has %d %s, and hako runs modules with at most %d: "+
		"compilers stay far below, so split up what yours made", e.Count, e.What, e.Limit)
}

func checkLimit(what string, count, limit uint64) error {
	if count > limit {
		return &LimitError{what, count, limit}
	}
	return nil
}

// Check reads a whole module and returns an error if it exceeds a limit, is malformed or uses a feature that hako does
// not run. It must come before anything else that reads the module. It allocates nothing for sizes that the module
// merely announces, and checks no types: the runtime does.
func Check(module []byte) error {
	sections, err := splitSections(module)
	if err != nil {
		return err
	}
	c := &checker{sections: sections}
	for _, step := range []func() error{
		c.checkTypes, c.checkImports, c.checkFunctions, c.checkTables, c.checkMemories,
		c.checkGlobals, c.checkExports, c.checkElements, c.checkCode, c.checkData,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// checker checks the sections in order.
type checker struct {
	sections map[byte][]byte
	types    []signature
	// functions has the type index of each function, imported ones first.
	functions []uint32
	imported  int
	// memories counts the imported ones.
	memories uint64
	// values counts parameters and results of all types, locals those of all functions.
	values int
	locals uint64
	// blocks has, for each open block of a function, how many values a branch to it carries.
	blocks []int
}

// signature is the number of parameters and results of a type.
type signature struct{ params, results int }

// vector starts reading a section: the number of entries, each of at least size bytes.
func (c *checker) vector(id byte, what string, limit uint64, size int) (*reader, uint64, error) {
	body, ok := c.sections[id]
	if !ok {
		return &reader{}, 0, nil
	}
	r := &reader{data: body}
	count, err := r.vector(what, limit, size)
	return r, count, err
}

// vector reads a number of entries, each of at least size bytes, and checks that the data has room for them.
func (r *reader) vector(what string, limit uint64, size int) (uint64, error) {
	count := r.uint()
	if err := checkLimit(what, count, limit); err != nil {
		return 0, err
	}
	if count*uint64(size) > uint64(len(r.data)-r.pos) {
		r.fail(errTruncated)
	}
	return count, r.err
}

// finish returns the error of reading a section, also if something follows its entries.
func (r *reader) finish(id byte) error {
	if r.err == nil && !r.done() {
		return fmt.Errorf("section %d holds more than its entries", id)
	}
	return r.err
}

func (c *checker) checkTypes() error {
	r, count, err := c.vector(sectionType, "types", maxTypes, 3)
	for range count {
		if form := r.byte(); form != 0x60 && r.err == nil {
			return fmt.Errorf("it has a type of form %#x, which hako does not run: build without the GC proposal", form)
		}
		var s signature
		if s.params, err = r.values("parameters of a function"); err != nil {
			return err
		}
		if s.results, err = r.values("results of a function"); err != nil {
			return err
		}
		if c.values += s.values(); c.values > maxAllValues {
			return &LimitError{"parameters and results of functions", uint64(c.values), maxAllValues}
		}
		c.types = append(c.types, s)
	}
	if err != nil {
		return err
	}
	return r.finish(sectionType)
}

func (r *reader) values(what string) (int, error) {
	count, err := r.vector(what, maxValues, 1)
	r.bytes(int(count))
	return int(count), err
}

func (c *checker) checkImports() error {
	r, count, err := c.vector(sectionImport, "imports", maxImports, 4)
	for range count {
		for range 2 {
			if err := r.checkName(); err != nil {
				return err
			}
		}
		switch kind := r.byte(); kind {
		case kindFunction:
			c.imported++
			if err := c.checkFunctionType(r); err != nil {
				return err
			}
		case kindTable:
			r.byte()
			r.limits()
		case kindMemory:
			r.limits()
			c.memories++
		case kindGlobal:
			r.bytes(2)
		default:
			return &UnsupportedError{fmt.Sprintf("import of kind %d", kind)}
		}
	}
	if err != nil {
		return err
	}
	return r.finish(sectionImport)
}

func (r *reader) checkName() error {
	n := r.uint()
	if err := checkLimit("bytes in a name", n, maxName); err != nil {
		return err
	}
	r.bytes(int(n))
	return r.err
}

func (c *checker) checkFunctionType(r *reader) error {
	index := r.uint()
	if r.err == nil && index >= uint64(len(c.types)) {
		return fmt.Errorf("function %d has the unknown type %d", len(c.functions), index)
	}
	c.functions = append(c.functions, uint32(index))
	return r.err
}

func (c *checker) checkFunctions() error {
	r, count, err := c.vector(sectionFunction, "functions", maxFunctions, 1)
	for range count {
		if err := c.checkFunctionType(r); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return r.finish(sectionFunction)
}

func (c *checker) checkTables() error {
	_, _, err := c.vector(sectionTable, "tables", maxTables, 3) // rewriter.boundTables checks their sizes
	return err
}

func (c *checker) checkMemories() error {
	r, count, err := c.vector(sectionMemory, "memories", 1, 2)
	if err == nil {
		err = checkLimit("memories", count+c.memories, 1)
	}
	if err != nil {
		return err
	}
	for range count {
		r.limits()
	}
	return r.finish(sectionMemory)
}

func (c *checker) checkGlobals() error {
	r, count, err := c.vector(sectionGlobal, "globals", maxGlobals, 4)
	for range count {
		r.bytes(2)
		if err := r.skipConstant(); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return r.finish(sectionGlobal)
}

func (r *reader) skipConstant() error {
	for start := r.pos; r.err == nil; {
		op := r.byte()
		if op == opEnd {
			break
		}
		if err := skipImmediates(r, op); err != nil {
			return err
		}
		if err := checkLimit("bytes in a constant expression", uint64(r.pos-start), maxConstant); err != nil {
			return err
		}
	}
	return r.err
}

func (c *checker) checkExports() error {
	r, count, err := c.vector(sectionExport, "exports", maxExports, 3)
	for range count {
		if err := r.checkName(); err != nil {
			return err
		}
		r.byte()
		r.uint()
	}
	if err != nil {
		return err
	}
	return r.finish(sectionExport)
}

func (c *checker) checkElements() error {
	r, count, err := c.vector(sectionElement, "element segments", maxSegments, 3)
	total := uint64(0)
	for range count {
		n, err := r.skipElement()
		if err != nil {
			return err
		}
		if total += n; total > MaxElements {
			return &LimitError{"elements in segments", total, MaxElements}
		}
	}
	if err != nil {
		return err
	}
	return r.finish(sectionElement)
}

// skipElement skips a segment and returns its number of elements.
func (r *reader) skipElement() (uint64, error) {
	flags := r.uint()
	if flags > 7 {
		return 0, &UnsupportedError{fmt.Sprintf("element segment of kind %d", flags)}
	}
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			r.uint() // table
		}
		if err := r.skipConstant(); err != nil {
			return 0, err
		}
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		r.byte() // element kind or reference type
	}
	count, err := r.vector("elements in a segment", MaxElements, 1)
	for range count {
		if flags&elementExpressions == 0 {
			r.uint()
		} else if err := r.skipConstant(); err != nil {
			return 0, err
		}
	}
	if err != nil {
		return 0, err
	}
	return count, r.err
}

func (c *checker) checkData() error {
	r, count, err := c.vector(sectionData, "data segments", maxSegments, 2)
	for range count {
		flags := r.uint()
		if flags == 2 {
			r.uint() // memory
		}
		if flags != 1 {
			if err := r.skipConstant(); err != nil {
				return err
			}
		}
		r.bytes(r.length())
	}
	if err != nil {
		return err
	}
	return r.finish(sectionData)
}

func (c *checker) checkCode() error {
	r, count, err := c.vector(sectionCode, "functions", maxFunctions, 3)
	if err != nil {
		return err
	}
	if own := len(c.functions) - c.imported; count > uint64(own) { // the runtime refuses too few
		return fmt.Errorf("it announces %d functions and has the code of %d", own, count)
	}
	for n := range count {
		size := r.length()
		if err := checkLimit("bytes in a function", uint64(size), maxBody); err != nil {
			return err
		}
		body := &reader{data: r.bytes(size)}
		if err := c.checkBody(body, c.types[c.functions[c.imported+int(n)]]); err != nil {
			return fmt.Errorf("function %d: %w", c.imported+int(n), err)
		}
	}
	return r.finish(sectionCode)
}

// movedSlack and movedPerByte bound the values that blocks, branches and calls of a function move because of their
// types. A few bytes of code could move hundreds each otherwise. Real code has pushed most of them with instructions of
// its own.
const (
	movedSlack   = 10_000
	movedPerByte = 4
)

func (c *checker) checkBody(r *reader, s signature) error {
	locals, err := checkLocals(r, s.params)
	if err != nil {
		return err
	}
	if c.locals += locals; c.locals > maxAllLocals {
		return &LimitError{"locals in all its functions", c.locals, maxAllLocals}
	}
	c.blocks = append(c.blocks[:0], s.results)
	moved := 0
	for !r.done() && len(c.blocks) > 0 {
		op := r.byte()
		switch { // fast path for most instructions
		case op >= opI32Eqz && op <= opI64Extend32S:
			continue
		case op >= opLocalGet && op <= opTableSet:
			r.uint()
			continue
		case op == opI32Const, op == opI64Const:
			r.int()
			continue
		}
		immediates := *r
		if err := skipImmediates(r, op); err != nil {
			return err
		}
		switch op {
		case opBlock, opLoop, opIf:
			s := c.blockType(immediates.int())
			carried := s.results
			if op == opLoop {
				carried = s.params
			}
			if c.blocks = append(c.blocks, carried); len(c.blocks) > maxNesting {
				return &LimitError{"blocks in each other", uint64(len(c.blocks)), maxNesting}
			}
			moved += s.params + s.results
		case opEnd:
			c.blocks = c.blocks[:len(c.blocks)-1]
		case opBr, opBrIf:
			moved += c.branchValues(immediates.uint())
		case opBrTable:
			n := immediates.uint()
			if err := checkLimit("targets in a br_table", n, maxTargets); err != nil {
				return err
			}
			for range n + 1 {
				moved += c.branchValues(immediates.uint())
			}
		case opCall, opReturnCall:
			if index := immediates.uint(); index < uint64(len(c.functions)) {
				moved += c.types[c.functions[index]].values()
			}
		case opCallIndirect, opReturnCallIndirect:
			if index := immediates.uint(); index < uint64(len(c.types)) {
				moved += c.types[index].values()
			}
		}
	}
	if r.err == nil && (!r.done() || len(c.blocks) > 0) {
		return errTruncated
	}
	if err := checkLimit("values that its blocks, branches and calls move", uint64(moved),
		uint64(movedSlack+movedPerByte*len(r.data))); err != nil {
		return err
	}
	return r.err
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
func (c *checker) branchValues(depth uint64) int {
	if depth >= uint64(len(c.blocks)) {
		return 0
	}
	return c.blocks[uint64(len(c.blocks))-1-depth]
}

// checkLocals reads the declarations of locals and returns the number of locals and parameters.
func checkLocals(r *reader, params int) (uint64, error) {
	total := uint64(params)
	declarations, err := r.vector("declarations of locals", maxLocals, 2)
	if err != nil {
		return 0, err
	}
	for range declarations {
		n := r.uint()
		if err := checkLimit("locals in a function", n, maxLocals); err != nil {
			return 0, err
		}
		total += n
		r.byte()
	}
	if err := checkLimit("locals in a function", total, maxLocals); err != nil {
		return 0, err
	}
	return total, r.err
}

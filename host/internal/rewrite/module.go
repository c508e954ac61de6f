// Package rewrite changes a Wasm module so that the host can stop it at any time, knows how much it computed, and can put its
// globals back.
//
// At the head of every loop, at the entry of functions, and wherever a path through straight-line code becomes long, the rewritten module
// counts a global, its fuel, down by one, and before an instruction that works on memory or tables in bulk by as much as there is to do.
// When the fuel passes zero the module calls an imported function, which may refill it or trap. Two functions need no count at their
// entry: one that is a small piece of straight-line code, whose work is counted to its callers, and one that begins with a loop.
// So the initial value (the quantum) bounds how long a guest runs without the host having a say. All mutable globals are exported, and
// tables, which lie outside of the memory, may not grow beyond MaxElements. Jumps ahead of the Go compiler's code, which lead through the
// head of a loop, are taken directly, so that they are no turns of it. The meaning of the module is otherwise unchanged.
//
// The rewriter knows the instructions of the WebAssembly core specification 2.0 and the tail calls; a module with others
// gives an UnsupportedError. Limits of a module are in this package too (Check), since it is what reads all of one.
package rewrite

import (
	"fmt"
	"slices"
	"strconv"
)

// Names that the rewritten module adds to its imports and exports.
const (
	// ImportModule and ImportName name the function () -> () that is called when the fuel is used up.
	ImportModule = "hako:fuel"
	ImportName   = "spent"
	// FuelExport names the mutable i64 global that holds the fuel.
	FuelExport = "hako_fuel"
	// globalExport names the other mutable globals, with their number.
	globalExport = "hako_global_"
)

// Result is a rewritten module.
type Result struct {
	Wasm []byte
	// Functions is how many functions of its own it has, Operations how many operations it is for an interpreter, roughly.
	Functions, Operations int
	// Globals are the names under which the mutable globals are exported, the fuel excepted.
	Globals []string
	// Lasting names something in the code whose effect is neither in memory nor in the globals of Globals, so that an instance
	// cannot be put back to where it started; empty if there is nothing.
	Lasting string
}

// UnsupportedError names something in a module that hako does not run. The module itself may be fine.
type UnsupportedError struct{ Feature string }

func (e *UnsupportedError) Error() string {
	return "it has " + e.Feature + ", which hako does not run: build for WebAssembly 2.0, without threads, exceptions, GC or relaxed SIMD"
}

// Section identifiers of the core specification, section 5.5.2.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
	sectionCount    = 12
)

const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
)

// Value types of the core specification, section 5.3.1.
const (
	typeI32 = 0x7f
	typeI64 = 0x7e
	typeF64 = 0x7c
)

// sectionOrder is the order in which sections must appear.
var sectionOrder = []byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
	sectionExport, sectionStart, sectionElement, sectionCount, sectionCode, sectionData,
}

// magic starts every core module of version 1.
var magic = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// Module rewrites a module. Its fuel starts at quantum. Custom sections are left out: they name functions by indexes that the
// rewriting moves. The error is one of Check, or a *LimitError for a module that becomes too large; what is not valid beyond that is passed
// on for the runtime to refuse.
func Module(module []byte, quantum int64) (*Result, error) {
	if err := Check(module); err != nil {
		return nil, err
	}
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	w := &rewriter{sections: sections, quantum: quantum}
	if err := w.rewrite(); err != nil {
		return nil, err
	}
	out := slices.Clone(magic)
	for _, id := range sectionOrder {
		if body, ok := w.sections[id]; ok {
			out = append(out, id)
			out = appendUint(out, uint64(len(body)))
			out = append(out, body...)
		}
	}
	w.result.Wasm = out
	return &w.result, nil
}

func split(module []byte) (map[byte][]byte, error) {
	r := &reader{data: module}
	if string(r.bytes(len(magic))) != string(magic) {
		return nil, fmt.Errorf("not a core Wasm module of version 1")
	}
	sections := map[byte][]byte{}
	for r.err == nil && !r.done() {
		id := r.byte()
		body := r.bytes(r.length())
		switch {
		case r.err != nil:
		case id == sectionCustom:
		case !slices.Contains(sectionOrder, id):
			return nil, &UnsupportedError{fmt.Sprintf("section %d", id)}
		case sections[id] != nil:
			return nil, fmt.Errorf("section %d stands twice", id)
		default:
			sections[id] = body
		}
	}
	return sections, r.err
}

// rewriter holds the sections as they are replaced one by one.
type rewriter struct {
	sections map[byte][]byte
	quantum  int64
	// shiftFrom is the index of the new import among the functions: those from there on move up by one.
	shiftFrom uint64
	// fuel is the index of the new global; the one after it holds an operand while it is counted.
	fuel uint64
	// counting is the code that counts one step.
	counting []byte
	// light has, for each function that is not imported, the work of those that do not count, and zero for the others.
	light []int
	// labels and straight are kept from one function to the next.
	labels   []label
	straight []byte
	// mutable are the indexes of the other mutable globals.
	mutable []uint64
	result  Result
}

// lasting notes the first thing found that outlives a call.
func (w *rewriter) lasting(what string) {
	if w.result.Lasting == "" {
		w.result.Lasting = what
	}
}

func (w *rewriter) rewrite() error {
	for _, step := range []func() error{w.addType, w.tables, w.addGlobal, w.exports, w.start, w.elements, w.code} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// shift returns the new index of a function.
func (w *rewriter) shift(index uint64) uint64 {
	if index >= w.shiftFrom {
		return index + 1
	}
	return index
}

// addType adds the type () -> () and the import that has it.
func (w *rewriter) addType() error {
	types := &reader{data: w.sections[sectionType]}
	count := uint64(0)
	if !types.done() {
		count = types.uint()
	}
	section := appendUint(nil, count+1)
	section = append(section, types.rest()...)
	w.sections[sectionType] = append(section, 0x60, 0, 0)
	if types.err != nil {
		return types.err
	}
	return w.addImport(count)
}

func (w *rewriter) addImport(typeIndex uint64) error {
	imports := &reader{data: w.sections[sectionImport]}
	count := uint64(0)
	if !imports.done() {
		count = imports.uint()
	}
	body := imports.rest()
	for range count {
		imports.name()
		imports.name()
		switch kind := imports.byte(); kind {
		case kindFunction:
			imports.uint()
			w.shiftFrom++
		case kindTable:
			imports.byte()
			imports.limits()
		case kindMemory:
			imports.limits()
		case kindGlobal:
			imports.byte()
			if imports.byte() == 1 {
				w.lasting("an imported mutable global")
			}
			w.fuel++
		default:
			return &UnsupportedError{fmt.Sprintf("import of kind %d", kind)}
		}
		if imports.err != nil {
			return imports.err
		}
	}
	section := appendUint(nil, count+1)
	section = append(section, body...)
	section = appendName(section, ImportModule)
	section = appendName(section, ImportName)
	section = append(section, kindFunction)
	w.sections[sectionImport] = appendUint(section, typeIndex)
	return nil
}

func (w *rewriter) addGlobal() error {
	globals := &reader{data: w.sections[sectionGlobal]}
	count := uint64(0)
	if !globals.done() {
		count = globals.uint()
	}
	section := appendUint(nil, count+2)
	for range count {
		kind := globals.bytes(2)
		section = append(section, kind...)
		if len(kind) == 2 && kind[1] == 1 {
			w.mutableGlobal(kind[0])
		}
		w.fuel++
		expr, err := w.constant(globals)
		if err != nil {
			return err
		}
		section = append(section, expr...)
	}
	section = append(section, typeI64, 1, opI64Const) // mutable
	section = appendInt(section, w.quantum)
	w.sections[sectionGlobal] = append(section, opEnd, typeI32, 1, opI32Const, 0, opEnd)
	return globals.err
}

// mutableGlobal notes the global with the index that the fuel would have now.
func (w *rewriter) mutableGlobal(valueType byte) {
	if valueType < typeF64 || valueType > typeI32 {
		w.lasting("a mutable global that holds a vector or a reference")
		return
	}
	w.mutable = append(w.mutable, w.fuel)
}

func (w *rewriter) exports() error {
	exports := &reader{data: w.sections[sectionExport]}
	count := uint64(0)
	if !exports.done() {
		count = exports.uint()
	}
	section := appendUint(nil, count+1+uint64(len(w.mutable)))
	for range count {
		name := exports.name()
		kind := exports.byte()
		index := exports.uint()
		if exports.err != nil {
			return exports.err
		}
		if kind == kindFunction {
			index = w.shift(index)
		}
		section = appendName(section, name)
		section = append(section, kind)
		section = appendUint(section, index)
	}
	for _, index := range w.mutable {
		name := globalExport + strconv.FormatUint(index, 10)
		w.result.Globals = append(w.result.Globals, name)
		section = exportGlobal(section, name, index)
	}
	w.sections[sectionExport] = exportGlobal(section, FuelExport, w.fuel)
	return nil
}

func exportGlobal(section []byte, name string, index uint64) []byte {
	return appendUint(append(appendName(section, name), kindGlobal), index)
}

func (w *rewriter) start() error {
	body, ok := w.sections[sectionStart]
	if !ok {
		return nil
	}
	r := &reader{data: body}
	w.sections[sectionStart] = appendUint(nil, w.shift(r.uint()))
	return r.err
}

// elements moves the function indexes of element segments; core specification, section 5.5.12.
func (w *rewriter) elements() error {
	body, ok := w.sections[sectionElement]
	if !ok {
		return nil
	}
	r := &reader{data: body}
	count := r.uint()
	section := appendUint(nil, count)
	for range count {
		var err error
		if section, err = w.element(section, r); err != nil {
			return err
		}
	}
	w.sections[sectionElement] = section
	return r.err
}

// Flags of element segments.
const (
	elementPassive     = 1
	elementExplicit    = 2
	elementExpressions = 4
)

func (w *rewriter) element(out []byte, r *reader) ([]byte, error) {
	flags := r.uint()
	if flags > 7 {
		return nil, &UnsupportedError{fmt.Sprintf("element segment of kind %d", flags)}
	}
	out = appendUint(out, flags)
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			out = appendUint(out, r.uint()) // table
		}
		offset, err := w.constant(r)
		if err != nil {
			return nil, err
		}
		out = append(out, offset...)
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		out = append(out, r.byte()) // element kind or reference type
	}
	count := r.uint()
	out = appendUint(out, count)
	for range count {
		if r.err != nil {
			return nil, r.err
		}
		if flags&elementExpressions == 0 {
			out = appendUint(out, w.shift(r.uint()))
			continue
		}
		expr, err := w.constant(r)
		if err != nil {
			return nil, err
		}
		out = append(out, expr...)
	}
	return out, r.err
}

// constant copies one constant expression, moving the functions that it refers to.
func (w *rewriter) constant(r *reader) ([]byte, error) {
	var out []byte
	for r.err == nil {
		op := r.data[r.pos:]
		if len(op) == 0 {
			return nil, errTruncated
		}
		end := op[0] == opEnd
		var err error
		if out, err = w.instruction(out, r); err != nil {
			return nil, err
		}
		if end {
			return out, nil
		}
	}
	return nil, r.err
}

func (w *rewriter) code() error {
	body, ok := w.sections[sectionCode]
	if !ok {
		return nil
	}
	codes, err := functions(body)
	if err != nil {
		return err
	}
	w.findLight(codes)
	w.result.Functions = len(codes)
	section := appendUint(make([]byte, 0, len(body)+len(body)/2), uint64(len(codes)))
	w.counting = w.pay(nil, 1)
	var function []byte
	for n, code := range codes {
		if function, err = w.function(function[:0], n, &reader{data: code}); err != nil {
			return err
		}
		section = appendUint(section, uint64(len(function)))
		section = append(section, function...)
		if err := within("bytes of code with the counting of its steps", uint64(len(section)), uint64(maxGrowth*len(body)+growthSlack)); err != nil {
			return err
		}
	}
	w.sections[sectionCode] = section
	return nil
}

// functions parts the code section.
func functions(section []byte) ([][]byte, error) {
	r := &reader{data: section}
	var list [][]byte
	for range r.uint() {
		list = append(list, r.bytes(r.length()))
		if r.err != nil {
			break
		}
	}
	return list, r.err
}

// function rewrites one function. n is its number among those that are not imported.
func (w *rewriter) function(out []byte, n int, r *reader) ([]byte, error) {
	locals, err := skipLocals(r)
	if err != nil {
		return nil, err
	}
	w.result.Operations += locals
	out = append(out, r.data[:r.pos]...)
	switch {
	case leads(*r):
		w.straight = straighten(w.straight[:0], reader{data: r.rest()})
		r = &reader{data: w.straight}
	case w.light[n] == 0:
		out = w.count(out)
	}
	p := &path{labels: w.labels[:0]}
	for r.err == nil && !r.done() {
		immediates := *r
		op := immediates.byte()
		cost := w.cost(op, immediates)
		if p.length+cost > maxPath {
			out = w.count(out)
			p.restart()
		}
		p.length += cost
		p.pass(op, immediates)
		w.result.Operations++
		if op == opBrTable {
			w.result.Operations += int(immediates.uint())
		}
		if out, err = w.instruction(out, r); err != nil {
			return nil, err
		}
		switch {
		case op == opLoop:
			out = w.count(out)
			p.restart()
		case op == opMemoryGrow:
			p.restart()
		case op == opCall && w.lightness(immediates) == 0, op == opCallIndirect:
			p.returned()
		}
	}
	w.labels = p.labels
	return out, r.err
}

// count appends what counts one step.
func (w *rewriter) count(out []byte) []byte {
	w.result.Operations += insertedOperations
	return append(out, w.counting...)
}

// insertedOperations is how many operations an interpreter makes of what pay or charge appends, at most.
const insertedOperations = 16

// pay appends: fuel -= steps; if fuel < 0 { spent() }. It leaves the stack as it was.
func (w *rewriter) pay(out []byte, steps int64) []byte {
	out = appendUint(append(out, opGlobalGet), w.fuel)
	w.result.Operations += insertedOperations
	return w.subtract(appendInt(append(out, opI64Const), steps))
}

// charge appends: fuel -= n >> shift; if fuel < 0 { spent() }, where n is on top of the stack and stays there.
func (w *rewriter) charge(out []byte, shift int64) []byte {
	operand := w.fuel + 1
	w.result.Operations += insertedOperations
	out = appendUint(append(out, opGlobalSet), operand)
	out = appendUint(append(out, opGlobalGet), w.fuel)
	out = appendUint(append(out, opGlobalGet), operand)
	out = appendInt(append(out, opI64ExtendI32U, opI64Const), shift)
	out = w.subtract(append(out, opI64ShrU))
	return appendUint(append(out, opGlobalGet), operand)
}

// subtract appends the end of both: fuel is set to the difference of the two numbers on the stack.
func (w *rewriter) subtract(out []byte) []byte {
	out = appendUint(append(out, opI64Sub, opGlobalSet), w.fuel)
	out = appendUint(append(out, opGlobalGet), w.fuel)
	out = append(out, opI64Const, 0, opI64LtS, opIf, noResult)
	out = appendUint(append(out, opCall), w.shiftFrom)
	return append(out, opEnd)
}

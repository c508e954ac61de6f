// Package rewrite instruments Wasm modules so that the host can stop them at any time, count their steps, and restore
// their globals. Module rewrites a module; Check only validates it against the limits of this package.
//
// The rewritten module has a global, its fuel. It is decremented at the head of every loop, at the entry of functions,
// where a path through straight-line code becomes long, and, by the amount of work, before bulk instructions on memory
// and tables. When the fuel becomes negative, the module calls an imported function, which may refill it or trap. So
// the initial fuel (the quantum) bounds how long a guest runs before the host gets control. Two kinds of functions need
// no count at their entry: small ones without calls and loops, whose work is charged to their callers, and those that
// begin with a loop. Straight-line code counts because one turn of a loop with 20,000 divisions in it ran for 73 s
// after its deadline. Charging a loop by the size of its body would be wrong for Go, whose functions are one large switch of
// which little runs at a time. The depth of recursion is not limited here: wazero traps when the stack reaches 84 MB.
//
// All mutable globals are exported. Tables, which are host memory, cannot grow beyond MaxElements. Forward jumps in
// code of the Go compiler, which lead through the head of a loop, are taken directly and not counted. Otherwise the
// meaning of the module does not change.
//
// The rewriter supports the WebAssembly core specification 2.0 and tail calls; other features are an UnsupportedError.
package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Names that the rewritten module adds to its imports and exports.
const (
	// ImportModule and ImportName name the function () -> () that the module calls when its fuel is used up.
	ImportModule = "hako:fuel"
	ImportName   = "spent"
	// FuelExport names the mutable i64 global that holds the fuel.
	FuelExport = "hako_fuel"
	// globalExport starts the export names of the other mutable globals. Their index follows.
	globalExport = "hako_global_"
	// EmptyModule replaces the empty module name in imports, which the runtime refuses.
	EmptyModule = "hako:empty"
)

// Reserved reports whether name is one that a rewritten module may add to its exports. A module of a component must not
// get at such an export of another one, with which it could give it fuel.
func Reserved(name string) bool { return name == FuelExport || strings.HasPrefix(name, globalExport) }

// Result is a rewritten module.
type Result struct {
	Wasm []byte
	// Functions is the number of functions that are not imported, Operations the approximate number of operations for
	// an interpreter.
	Functions, Operations int
	// Memory is the size with which the module's own memory starts, in bytes; -1 if it has none.
	Memory int64
	// Elements bounds the elements that the module's own tables can have.
	Elements int
	// Globals are the export names of the mutable globals, except the fuel.
	Globals []string
	// Unrestorable names something in the code that changes state outside of memory and Globals, so that an instance
	// cannot be restored; empty if there is nothing.
	Unrestorable string
}

// UnsupportedError names a feature of the module that hako does not run. The module may be valid.
type UnsupportedError struct{ Feature string }

func (e *UnsupportedError) Error() string {
	return "it has " + e.Feature +
		", which hako does not run: build for WebAssembly 2.0, without threads, exceptions, GC or relaxed SIMD"
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

// Module rewrites a module, whose fuel starts at quantum. All its tables together may grow by growth elements:
// MaxElements, or less for one of the modules of a component. Custom sections are dropped: they refer to function
// indexes that shift. The error is one of Check, or a *LimitError if the module becomes too large. The runtime has to
// detect other invalid modules.
func Module(module []byte, quantum int64, growth int) (*Result, error) {
	if err := Check(module); err != nil {
		return nil, err
	}
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	w := &rewriter{sections: sections, quantum: quantum, growth: uint64(growth)}
	if err := w.rewrite(); err != nil {
		return nil, err
	}
	w.result.Memory = -1
	if memories := (&reader{data: sections[sectionMemory]}); memories.uint() > 0 {
		w.result.Memory = startMemory(sections)
	}
	w.result.Wasm = appendSections(slices.Clone(magic), w.sections)
	return &w.result, nil
}

func appendSections(out []byte, sections map[byte][]byte) []byte {
	for _, id := range sectionOrder {
		if body, ok := sections[id]; ok {
			out = appendSection(out, id, body)
		}
	}
	return out
}

func appendSection(out []byte, id byte, body []byte) []byte {
	return append(appendUint(append(out, id), uint64(len(body))), body...)
}

func splitSections(module []byte) (map[byte][]byte, error) {
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
			return nil, fmt.Errorf("section %d occurs twice", id)
		default:
			sections[id] = body
		}
	}
	return sections, r.err
}

// rewriter replaces the sections one by one.
type rewriter struct {
	sections map[byte][]byte
	quantum  int64
	growth   uint64
	// shiftFrom is the function index of the new import: indexes from there on shift by one.
	shiftFrom uint64
	// fuel is the index of the new global. The global after it holds the operand of a bulk instruction while it is
	// charged.
	fuel uint64
	// countCode is the code that counts one step.
	countCode []byte
	// leafWork has the work of each leaf, and zero for the functions that count; imported ones are left out.
	leafWork []int
	// labels and direct are buffers, reused between functions.
	labels []label
	direct []byte
	// mutable has the indexes of the other mutable globals.
	mutable []uint64
	result  Result
}

func (w *rewriter) markUnrestorable(what string) {
	if w.result.Unrestorable == "" {
		w.result.Unrestorable = what
	}
}

func (w *rewriter) rewrite() error {
	for _, step := range []func() error{w.addType, w.boundTables, w.addGlobal, w.addExports, w.rewriteStart,
		w.rewriteElements, w.rewriteCode} {
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

// addType adds the type () -> () and the import of that type.
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
	section := appendUint(nil, count+1)
	for range count {
		section = appendName(section, cmp.Or(imports.name(), EmptyModule))
		start := imports.pos
		if name := imports.name(); Reserved(name) {
			return fmt.Errorf("it imports %q, a name that is reserved: rename it", name)
		}
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
			imports.bytes(2) // a mutable one is restored with the module of the component that defines it
			w.fuel++
		default:
			return &UnsupportedError{fmt.Sprintf("import of kind %d", kind)}
		}
		if imports.err != nil {
			return imports.err
		}
		section = append(section, imports.data[start:imports.pos]...)
	}
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
			w.addMutable(kind[0])
		}
		w.fuel++
		expr, err := w.copyConstant(globals)
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

// addMutable adds the global being read, whose index is that of w.fuel now.
func (w *rewriter) addMutable(valueType byte) {
	if valueType < typeF64 || valueType > typeI32 {
		w.markUnrestorable("a mutable global that holds a vector or a reference")
		return
	}
	w.mutable = append(w.mutable, w.fuel)
}

func (w *rewriter) addExports() error {
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

func (w *rewriter) rewriteStart() error {
	body, ok := w.sections[sectionStart]
	if !ok {
		return nil
	}
	r := &reader{data: body}
	w.sections[sectionStart] = appendUint(nil, w.shift(r.uint()))
	return r.err
}

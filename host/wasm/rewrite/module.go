// Package rewrite instruments Wasm modules so that the host can stop them at any time, count their steps, and restore
// their globals. Module rewrites a module; Check only validates it against the limits of this package.
//
// The rewritten module has a global, its fuel. It is decremented at the head of every loop, at the entry of functions,
// where a path through straight-line code becomes long, and, by the amount of work, before bulk instructions on memory
// and tables. When the fuel becomes negative, the module calls an imported function, which may refill it or trap. So
// the initial fuel (the quantum) bounds how long a guest runs before the host gets control. Two kinds of functions need
// no count at their entry: small ones without calls and loops, whose work is charged to their callers, and those that
// begin with a loop. Straight-line code counts because one turn of a loop with 20,000 divisions in it ran for 73 s
// after its deadline. Charging a loop by the size of its body would be wrong for Go, whose functions are one large
// switch of which little runs at a time. The depth of recursion is not limited here: wazero traps when the stack
// reaches 84 MB.
//
// All mutable globals are exported. Tables, which are host memory, cannot grow beyond MaxElements. Forward jumps in
// code of the Go compiler, which lead through the head of a loop, are taken directly and not counted. Otherwise the
// meaning of the module does not change.
//
// Modules are read with wasmbin, whose errors are thrown and caught by the exported functions. All but Check expect a
// module that Check has accepted, or the result of Module; with another one they return an error, or less than there
// is.
//
// The rewriter supports the WebAssembly core specification 2.0 and tail calls; other features are an UnsupportedError.
package rewrite

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/wasm/wasmbin"
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
	// an interpreter, with those of a large function counted twice.
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

// UnsupportedError names a feature of the module that is not supported. The module may be valid.
type UnsupportedError struct{ Feature string }

func (e *UnsupportedError) Error() string {
	return "it has " + e.Feature +
		", which is not supported: build for WebAssembly 2.0, without threads, exceptions, GC or relaxed SIMD"
}

// Kinds of imports and exports.
const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
)

type reader = wasmbin.Reader

func newReader(data []byte) *reader { return wasmbin.New(data, maxName) }

// Module rewrites a module, whose fuel starts at quantum. All its tables together may grow by growth elements:
// MaxElements, or less for one of the modules of a component. Custom sections are dropped: they refer to function
// indexes that shift. The error is one of Check, or a *LimitError if the module becomes too large. The runtime has to
// detect other invalid modules.
func Module(module []byte, quantum int64, growth int) (result *Result, err error) {
	if err := Check(module); err != nil {
		return nil, err
	}
	defer wasmbin.Catch(&err)
	sections := readSections(module)
	w := &rewriter{sections: sections, quantum: quantum, growth: uint64(growth)}
	w.addType()
	w.boundTables()
	w.addGlobal()
	w.addExports()
	w.rewriteStart()
	w.rewriteElements()
	w.rewriteCode()
	w.result.Memory = startMemory(sections)
	w.result.Wasm = appendSections([]byte(wasmbin.Header), sections)
	return &w.result, nil
}

func appendSections(out []byte, sections map[byte][]byte) []byte {
	for _, id := range wasmbin.SectionOrder {
		if body, ok := sections[id]; ok {
			out = wasmbin.AppendSection(out, id, body)
		}
	}
	return out
}

// splitSections returns readers of the sections of a module, except the custom ones.
func splitSections(module []byte) map[byte]*reader {
	sections := map[byte]*reader{}
	newReader(module).Module(func(s wasmbin.Section) {
		if s.ID == wasmbin.TagSection {
			wasmbin.Throw(&UnsupportedError{"exceptions"})
		}
		if s.ID != wasmbin.CustomSection {
			sections[s.ID] = s.Content
		}
	})
	return sections
}

// readSections returns the contents of the sections of a module, except the custom ones.
func readSections(module []byte) map[byte][]byte {
	sections := map[byte][]byte{}
	for id, r := range splitSections(module) {
		sections[id] = r.Rest()
	}
	return sections
}

// entries returns a reader of the entries of a section and their number; an absent section has none.
func entries(sections map[byte][]byte, id byte) (*reader, int) {
	body, ok := sections[id]
	if !ok {
		return newReader(nil), 0
	}
	r := newReader(body)
	return r, r.Count("entries", len(body))
}

// rewriter replaces the sections one by one.
type rewriter struct {
	sections map[byte][]byte
	quantum  int64
	growth   uint64
	// shiftFrom is the function index of the new import: indexes from there on shift by one.
	shiftFrom uint32
	// fuel is the index of the new global. The global after it holds the operand of a bulk instruction while it is
	// charged.
	fuel uint32
	// countCode is the code that counts one step.
	countCode []byte
	// leafWork has the work of each leaf, and zero for the functions that count; imported ones are left out.
	leafWork []int
	// labels and direct are buffers, reused between functions.
	labels []label
	direct []byte
	// mutable has the indexes of the other mutable globals.
	mutable []uint32
	result  Result
}

func (w *rewriter) markUnrestorable(what string) {
	if w.result.Unrestorable == "" {
		w.result.Unrestorable = what
	}
}

// shift returns the new index of a function.
func (w *rewriter) shift(index uint32) uint32 {
	if index >= w.shiftFrom {
		return index + 1
	}
	return index
}

// addType adds the type () -> () and the import of that type.
func (w *rewriter) addType() {
	types, count := entries(w.sections, wasmbin.TypeSection)
	section := append(wasmbin.AppendUint(nil, count+1), types.Rest()...)
	w.sections[wasmbin.TypeSection] = append(section, wasmbin.FuncType, 0, 0)
	w.addImport(count)
}

func (w *rewriter) addImport(typeIndex int) {
	imports, count := entries(w.sections, wasmbin.ImportSection)
	section := wasmbin.AppendUint(nil, count+1)
	for range count {
		section = wasmbin.AppendName(section, cmp.Or(imports.Name(), EmptyModule))
		start := imports.Pos
		imports.Name()
		switch imports.Byte() {
		case kindFunction:
			imports.Uint32()
			w.shiftFrom++
		case kindTable:
			imports.Byte()
			imports.Limits()
		case kindMemory:
			imports.Limits()
		case kindGlobal:
			imports.Next(2) // a mutable one is restored with the module of the component that defines it
			w.fuel++
		}
		section = append(section, imports.Since(start)...)
	}
	section = wasmbin.AppendName(section, ImportModule)
	section = wasmbin.AppendName(section, ImportName)
	section = append(section, kindFunction)
	w.sections[wasmbin.ImportSection] = wasmbin.AppendUint(section, typeIndex)
}

func (w *rewriter) addGlobal() {
	globals, count := entries(w.sections, wasmbin.GlobalSection)
	section := wasmbin.AppendUint(nil, count+2)
	for range count {
		kind := globals.Next(2)
		section = append(section, kind...)
		if kind[1] == 1 {
			w.addMutable(kind[0])
		}
		w.fuel++
		section = w.copyConstant(section, globals)
	}
	section = append(section, wasmbin.I64, 1, opI64Const) // mutable
	section = wasmbin.AppendInt(section, w.quantum)
	w.sections[wasmbin.GlobalSection] = append(section, opEnd, wasmbin.I32, 1, opI32Const, 0, opEnd)
}

// addMutable adds the global being read, whose index is that of w.fuel now.
func (w *rewriter) addMutable(valueType byte) {
	if valueType < wasmbin.F64 || valueType > wasmbin.I32 {
		w.markUnrestorable("a mutable global that holds a vector or a reference")
		return
	}
	w.mutable = append(w.mutable, w.fuel)
}

func (w *rewriter) addExports() {
	exports, count := entries(w.sections, wasmbin.ExportSection)
	section := wasmbin.AppendUint(nil, count+1+len(w.mutable))
	for range count {
		name, kind, index := exports.Name(), exports.Byte(), exports.Uint32()
		if kind == kindFunction {
			index = w.shift(index)
		}
		section = wasmbin.AppendName(section, name)
		section = append(section, kind)
		section = wasmbin.AppendUint(section, index)
	}
	for _, index := range w.mutable {
		name := globalExport + strconv.FormatUint(uint64(index), 10)
		w.result.Globals = append(w.result.Globals, name)
		section = exportGlobal(section, name, index)
	}
	w.sections[wasmbin.ExportSection] = exportGlobal(section, FuelExport, w.fuel)
}

func exportGlobal(section []byte, name string, index uint32) []byte {
	return wasmbin.AppendUint(append(wasmbin.AppendName(section, name), kindGlobal), index)
}

func (w *rewriter) rewriteStart() {
	if body, ok := w.sections[wasmbin.StartSection]; ok {
		w.sections[wasmbin.StartSection] = wasmbin.AppendUint(nil, w.shift(newReader(body).Uint32()))
	}
}

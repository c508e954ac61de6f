package component

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// coreItem is a core item's type: of a function, table, memory, global or tag.
type coreItem struct {
	sort CoreSort
	// function is the signature of a function or tag.
	function *coreFunc
	// value is the type of a table's elements or of a global.
	value   string
	mutable bool // of a global
	limits  wasmbin.Limits
}

// coreFunc is a core function type. Value types are in the binary format: most are one byte.
type coreFunc struct{ params, results string }

func (f *coreFunc) String() string {
	text := "(func"
	if f.params != "" {
		text += " (param" + coreTypes(f.params) + ")"
	}
	if f.results != "" {
		text += " (result" + coreTypes(f.results) + ")"
	}
	return text + ")"
}

// coreTypes returns core value types as text, each after a space.
func coreTypes(types string) (text string) {
	for _, t := range []byte(types) {
		switch t {
		case i32:
			text += " i32"
		case i64:
			text += " i64"
		case f32:
			text += " f32"
		case f64:
			text += " f64"
		default:
			text += fmt.Sprintf(" %#x", t)
		}
	}
	return text
}

// moduleType is the type of a core module.
type moduleType struct {
	imports []coreImport
	exports map[string]coreItem
}

type coreImport struct {
	module, name string
	item         coreItem
}

// Codes of core types.
const (
	coreTypeFunc    = wasmbin.FuncType
	coreTypeModule  = 0x50
	coreTypeRefNull = 0x63
	coreTypeRef     = 0x64
)

// coreType decodes a core type and adds it to its index space.
func (d *decoder) coreType(r *reader, s *scope) {
	d.countTypes(r, 1)
	switch code := r.Byte(); code {
	case coreTypeFunc:
		s.coreTypes = append(s.coreTypes, d.coreFunc(r))
	case coreTypeModule:
		s.coreTypes = append(s.coreTypes, d.moduleType(r, s))
	default:
		r.Fail("core type %#x is neither of a function nor of a module: the GC proposal is not supported", code)
	}
}

func (d *decoder) coreFunc(r *reader) *coreFunc {
	d.countTypes(r, 1)
	return &coreFunc{coreValues(r), coreValues(r)}
}

func coreValues(r *reader) string {
	n := r.Count("core parameters or results", maxCoreValues)
	start := r.Pos
	for range n {
		coreValue(r)
	}
	return string(r.Since(start))
}

// coreValue reads a core value type.
func coreValue(r *reader) string {
	start := r.Pos
	if code := r.Byte(); code == coreTypeRef || code == coreTypeRefNull {
		r.Signed(33)
	} else if code < 0x60 || code > i32 {
		r.Fail("core value type %#x does not exist", code)
	}
	return string(r.Since(start))
}

func memoryLimits(r *reader) wasmbin.Limits {
	l := r.Limits()
	const largest = 1 << 16 // pages of 64 KiB
	if l.Flags&(wasmbin.Limits64|wasmbin.LimitsPageSize) == 0 && max(l.Min, l.Max) > largest {
		r.Fail("a memory has %d pages: it can have %d", max(l.Min, l.Max), largest)
	}
	return l
}

// coreItemType reads the type of an import or of a declared export.
func (d *decoder) coreItemType(r *reader, function func(uint32) *coreFunc) coreItem {
	item := coreItem{sort: CoreSort(r.Byte())}
	switch item.sort {
	case CoreFunc:
		item.function = function(r.Uint32())
	case CoreTable:
		item.value, item.limits = coreValue(r), r.Limits()
	case CoreMemory:
		item.limits = memoryLimits(r)
	case CoreGlobal:
		item.value, item.mutable = coreValue(r), r.Flag("the mark of a mutable global")
	case CoreTag:
		r.Expect(0, "the attribute of a tag")
		item.function = function(r.Uint32())
	default:
		r.Fail("core sort %#x cannot be imported or exported", byte(item.sort))
	}
	return item
}

// moduleType decodes the type of a core module.
func (d *decoder) moduleType(r *reader, parent *scope) *moduleType {
	s := d.newScope(r, parent, inModuleType)
	t := &moduleType{exports: map[string]coreItem{}}
	function := func(index uint32) *coreFunc { return coreFuncAt(r, s.coreTypes, index) }
	for range r.Count("declarations", maxDefinitions) {
		d.countTypes(r, 1)
		switch kind := r.Byte(); kind {
		case 0:
			t.imports = append(t.imports, coreImport{r.Name(), r.Name(), d.coreItemType(r, function)})
		case 1:
			if r.Peek() == coreTypeModule {
				r.Fail("the type of a core module defines another one")
			}
			d.coreType(r, s)
		case 2:
			r.Expect(byte(CoreType), "the sort of an alias in the type of a core module")
			r.Expect(1, "the kind of an alias in the type of a core module")
			count, index := r.Uint32(), r.Uint32()
			from := s.enclosing(r, count)
			s.coreTypes = append(s.coreTypes, coreFuncAt(r, from.coreTypes, index))
		case 3:
			t.export(r, r.Name(), d.coreItemType(r, function))
		default:
			r.Fail("kind %#x of a declaration does not exist", kind)
		}
	}
	t.checkImports(r)
	return t
}

func (t *moduleType) export(r *reader, name string, item coreItem) {
	if _, ok := t.exports[name]; ok {
		r.Fail("a core module exports %q twice", name)
	}
	t.exports[name] = item
}

// checkImports refuses two imports of the same name: an argument could be right for one of them only.
func (t *moduleType) checkImports(r *reader) {
	type name struct{ module, name string }
	seen := map[name]bool{}
	for _, i := range t.imports {
		if n := (name{i.module, i.name}); seen[n] {
			r.Fail("a core module imports %q of %q twice", i.name, i.module)
		} else {
			seen[n] = true
		}
	}
}

func coreFuncAt(r *reader, types []any, index uint32) *coreFunc {
	t, ok := at(r, types, index, "core type").(*coreFunc)
	if !ok {
		r.Fail("core type %d is used as the type of a function, which it is not", index)
	}
	return t
}

// coreModule reads the imports and exports of a core module. The runtime validates the rest.
func (d *decoder) coreModule(r *reader) *moduleType {
	m := &coreModuleReader{decoder: d, moduleType: &moduleType{exports: map[string]coreItem{}}}
	r.Module(func(s wasmbin.Section) { m.section(s.Content, s.ID) })
	m.checkImports(r)
	return m.moduleType
}

type coreModuleReader struct {
	*decoder
	*moduleType
	types []any // *coreFunc
	items [CoreTag + 1][]coreItem
}

func (m *coreModuleReader) section(r *reader, id byte) {
	var entry func()
	switch id {
	case wasmbin.TypeSection:
		entry = func() {
			if code := r.Byte(); code != coreTypeFunc {
				r.Fail("core type %#x is not of a function: the GC proposal is not supported", code)
			}
			m.types = append(m.types, m.coreFunc(r))
		}
	case wasmbin.ImportSection:
		entry = func() {
			i := coreImport{r.Name(), r.Name(), m.coreItemType(r, m.function(r))}
			m.imports = append(m.imports, i)
			m.add(i.item)
		}
	case wasmbin.FunctionSection:
		entry = func() { m.add(coreItem{sort: CoreFunc, function: m.function(r)(r.Uint32())}) }
	case wasmbin.TableSection:
		entry = func() { m.add(coreItem{sort: CoreTable, value: coreValue(r), limits: r.Limits()}) }
	case wasmbin.MemorySection:
		entry = func() { m.add(coreItem{sort: CoreMemory, limits: memoryLimits(r)}) }
	case wasmbin.TagSection:
		entry = func() {
			r.Expect(0, "the attribute of a tag")
			m.add(coreItem{sort: CoreTag, function: m.function(r)(r.Uint32())})
		}
	case wasmbin.GlobalSection:
		entry = func() {
			m.add(coreItem{sort: CoreGlobal, value: coreValue(r), mutable: r.Flag("the mark of a mutable global")})
			checkConstant(r)
		}
	case wasmbin.ExportSection:
		entry = func() {
			m.countTypes(r, 1)
			name, sort := r.Name(), CoreSort(r.Byte())
			if sort > CoreTag {
				r.Fail("core sort %#x cannot be exported", byte(sort))
			}
			m.export(r, name, at(r, m.items[sort], r.Uint32(), sort.String()))
		}
	default:
		return
	}
	for range r.Count("entries of a section of a core module", maxCoreItems) {
		entry()
	}
	r.Finish("a section of a core module")
}

func (m *coreModuleReader) function(r *reader) func(uint32) *coreFunc {
	return func(index uint32) *coreFunc { return coreFuncAt(r, m.types, index) }
}

func (m *coreModuleReader) add(item coreItem) { m.items[item.sort] = append(m.items[item.sort], item) }

// Instructions of constant expressions.
const (
	opEnd       = 0x0b
	opGlobalGet = 0x23
	opI32Const  = 0x41
	opI64Const  = 0x42
	opF32Const  = 0x43
	opF64Const  = 0x44
	opRefNull   = 0xd0
	opRefFunc   = 0xd2
	opVector    = 0xfd
)

// checkConstant reads a constant expression, and fails on instructions that do not belong in one.
func checkConstant(r *reader) {
	for {
		switch op := r.Byte(); op {
		case opEnd:
			return
		case opI32Const:
			r.Signed(32)
		case opRefNull:
			r.Signed(33)
		case opI64Const:
			r.Signed(64)
		case opGlobalGet, opRefFunc:
			r.Uint32()
		case opF32Const:
			r.Next(4)
		case opF64Const:
			r.Next(8)
		case opVector:
			if code := r.Uint32(); code != 12 {
				r.Fail("vector instruction %d in a constant expression", code)
			}
			r.Next(16)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // addition, subtraction, multiplication
		default:
			r.Fail("instruction %#x in a constant expression", op)
		}
	}
}

// accepts reports whether an item may be given where want is wanted.
func (want *coreItem) accepts(have *coreItem) bool {
	if want.sort != have.sort || want.value != have.value || want.mutable != have.mutable {
		return false
	}
	if want.function != nil {
		return *want.function == *have.function
	}
	wanted, given := want.limits, have.limits
	if (wanted.Flags^given.Flags)&^wasmbin.LimitsMax != 0 || given.Min < wanted.Min {
		return false
	}
	return wanted.Flags&wasmbin.LimitsMax == 0 || given.Flags&wasmbin.LimitsMax != 0 && given.Max <= wanted.Max
}

// accepts reports whether a module may be given where want is wanted: it imports no more and exports no less.
func (want *moduleType) accepts(have *moduleType) bool {
	given := map[coreImport]coreItem{}
	for _, i := range want.imports {
		given[coreImport{module: i.module, name: i.name}] = i.item
	}
	for _, i := range have.imports {
		item, ok := given[coreImport{module: i.module, name: i.name}]
		if !ok || !i.item.accepts(&item) {
			return false
		}
	}
	for name, item := range want.exports {
		if exported, ok := have.exports[name]; !ok || !item.accepts(&exported) {
			return false
		}
	}
	return true
}

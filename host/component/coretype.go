package component

import (
	"bytes"
	"fmt"
	"strings"
)

// coreItem is a core item's type: of a function, table, memory, global or tag.
type coreItem struct {
	sort CoreSort
	// function is the signature of a function or tag.
	function *coreFunc
	// value is the type of a table's elements or of a global.
	value   string
	mutable bool // of a global
	limits  coreLimits
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

// coreLimits are the sizes of a table or memory.
type coreLimits struct {
	flags    byte
	min, max uint64
}

// Flags of limits.
const (
	limitsMax      = 1
	limitsShared   = 2
	limits64       = 4
	limitsPageSize = 8
)

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
	coreTypeFunc    = 0x60
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
		r.Fail("core type %#x is neither of a function nor of a module: hako does not run the GC proposal", code)
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
		r.DiscardSigned(33)
	} else if code < 0x60 || code > i32 {
		r.Fail("core value type %#x does not exist", code)
	}
	return string(r.Since(start))
}

func readCoreLimits(r *reader, memory bool) coreLimits {
	l := coreLimits{flags: r.Byte()}
	if l.flags >= 2*limitsPageSize {
		r.Fail("flags %#x of a size do not exist", l.flags)
	}
	l.min = r.Uint64()
	if l.flags&limitsMax != 0 {
		l.max = r.Uint64()
	}
	largest := uint64(1 << 16) // pages of a memory
	if l.flags&limitsPageSize != 0 {
		r.Uint32()
		largest = 1 << 32
	}
	if memory && l.flags&limits64 == 0 && max(l.min, l.max) > largest {
		r.Fail("a memory has %d pages: it can have %d", max(l.min, l.max), largest)
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
		item.value, item.limits = coreValue(r), readCoreLimits(r, false)
	case CoreMemory:
		item.limits = readCoreLimits(r, true)
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

// Sections of a core module, in their order.
const coreSections = "\x01\x02\x03\x04\x05\x0d\x06\x07\x08\x09\x0c\x0a\x0b"

// Sections of a core module that have the types of its imports and exports.
const (
	coreSectionType     = 1
	coreSectionImport   = 2
	coreSectionFunction = 3
	coreSectionTable    = 4
	coreSectionMemory   = 5
	coreSectionGlobal   = 6
	coreSectionExport   = 7
	coreSectionTag      = 13
)

// coreModule reads the imports and exports of a core module. The runtime validates the rest.
func (d *decoder) coreModule(r *reader) *moduleType {
	if !bytes.HasPrefix(r.Rest(), []byte("\x00asm\x01\x00\x00\x00")) {
		r.Fail("a core module does not start as one of version 1")
	}
	r.Pos += 8
	m := &coreModuleReader{decoder: d, moduleType: &moduleType{exports: map[string]coreItem{}}}
	last := -1
	for !r.Done() {
		id := r.Byte()
		body := r.Section()
		if id == sectionCustom {
			body.Name()
			continue
		}
		order := strings.IndexByte(coreSections, id)
		if order < 0 {
			r.Fail("section %d of a core module does not exist", id)
		}
		if order <= last {
			r.Fail("section %d of a core module is out of order", id)
		}
		last = order
		m.section(body, id)
	}
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
	case coreSectionType:
		entry = func() {
			if code := r.Byte(); code != coreTypeFunc {
				r.Fail("core type %#x is not of a function: hako does not run the GC proposal", code)
			}
			m.types = append(m.types, m.coreFunc(r))
		}
	case coreSectionImport:
		entry = func() {
			i := coreImport{r.Name(), r.Name(), m.coreItemType(r, m.function(r))}
			m.imports = append(m.imports, i)
			m.add(i.item)
		}
	case coreSectionFunction:
		entry = func() { m.add(coreItem{sort: CoreFunc, function: m.function(r)(r.Uint32())}) }
	case coreSectionTable:
		entry = func() { m.add(coreItem{sort: CoreTable, value: coreValue(r), limits: readCoreLimits(r, false)}) }
	case coreSectionMemory:
		entry = func() { m.add(coreItem{sort: CoreMemory, limits: readCoreLimits(r, true)}) }
	case coreSectionTag:
		entry = func() {
			r.Expect(0, "the attribute of a tag")
			m.add(coreItem{sort: CoreTag, function: m.function(r)(r.Uint32())})
		}
	case coreSectionGlobal:
		entry = func() {
			m.add(coreItem{sort: CoreGlobal, value: coreValue(r), mutable: r.Flag("the mark of a mutable global")})
			skipConstant(r)
		}
	case coreSectionExport:
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

// skipConstant skips a constant expression.
func skipConstant(r *reader) {
	for {
		switch op := r.Byte(); op {
		case opEnd:
			return
		case opI32Const:
			r.DiscardSigned(32)
		case opRefNull:
			r.DiscardSigned(33)
		case opI64Const:
			r.DiscardSigned(64)
		case opGlobalGet, opRefFunc:
			r.Uint32()
		case opF32Const:
			r.Discard(4)
		case opF64Const:
			r.Discard(8)
		case opVector:
			if code := r.Uint32(); code != 12 {
				r.Fail("vector instruction %d in a constant expression", code)
			}
			r.Discard(16)
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
	return want.limits.accept(have.limits)
}

func (want coreLimits) accept(have coreLimits) bool {
	if (want.flags^have.flags)&^limitsMax != 0 || have.min < want.min {
		return false
	}
	return want.flags&limitsMax == 0 || have.flags&limitsMax != 0 && have.max <= want.max
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

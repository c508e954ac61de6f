package manifest

import (
	"slices"

	"github.com/hako-run/hako/host/internal/wasmbin"
	"github.com/hako-run/hako/pdk/abi"
)

// moduleReader collects what a Module holds. Its methods are called by eachSection, and panic with a *wasmbin.Error.
type moduleReader struct {
	module Module
	types  []FuncType
	// functions are the indexes into types of all functions, imported ones first.
	functions []uint32
	memories  int
	last      int // the place of the last section in sectionOrder
}

// section reads a section of a core module.
func (m *moduleReader) section(s section) {
	r := s.content
	if s.id == customSection {
		m.custom(s)
		return
	}
	rank := slices.Index(sectionOrder, s.id)
	if rank <= m.last {
		r.FailAt(s.start, "section %d is unknown, repeated or out of order", s.id)
	}
	m.last = rank
	var what string
	var entry func(*wasmbin.Reader)
	switch s.id {
	case typeSection:
		what, entry = "types", m.funcType
	case importSection:
		what, entry = "imports", m.importEntry
	case functionSection:
		what, entry = "functions", m.function
	case memorySection:
		what, entry = "memories", m.memory
	case exportSection:
		what, entry = "exports", m.export
	default:
		return
	}
	for range r.Count(what, maxEntries) {
		entry(r)
	}
	r.Finish("the section of " + what)
}

// custom keeps the sections that are hako's.
func (m *moduleReader) custom(s section) {
	keep := map[string]*[]byte{abi.ManifestSection: &m.module.Manifest,
		abi.RecordingsSection: &m.module.Recordings}[s.name]
	if keep == nil {
		return
	}
	if *keep != nil {
		s.content.FailAt(s.start, "the custom section %s is there twice: pack the plugin again", s.name)
	}
	*keep = s.content.Rest()
}

func (m *moduleReader) funcType(r *wasmbin.Reader) {
	if form := r.Peek(); form != 0x60 {
		r.Fail("it has a type of form %#x, which hako does not run: build without the GC proposal", form)
	}
	r.Byte()
	m.types = append(m.types, FuncType{readValueTypes(r), readValueTypes(r)})
}

func readValueTypes(r *wasmbin.Reader) []ValueType {
	b := r.Bytes()
	types := make([]ValueType, len(b))
	for i, t := range b {
		if types[i] = ValueType(t); types[i].String() == "" {
			r.Fail("it has a value of type %#x, which hako does not run", t)
		}
	}
	return types
}

func (m *moduleReader) importEntry(r *wasmbin.Reader) {
	i := Import{Module: r.Name(), Name: r.Name(), Kind: Kind(r.Byte())}
	switch i.Kind {
	case KindFunc:
		m.function(r)
		t := m.types[m.functions[len(m.functions)-1]]
		i.Type = &t
	case KindTable:
		r.Byte()
		readLimits(r)
	case KindMemory:
		m.memory(r)
	case KindGlobal:
		r.Discard(2)
	default:
		r.Fail("import %s.%s is of kind %d, which hako does not run: build without the exceptions proposal",
			i.Module, i.Name, byte(i.Kind))
	}
	m.module.Imports = append(m.module.Imports, i)
}

func (m *moduleReader) function(r *wasmbin.Reader) {
	index := r.Uint32()
	if uint64(index) >= uint64(len(m.types)) {
		r.Fail("function %d has the unknown type %d", len(m.functions), index)
	}
	m.functions = append(m.functions, index)
}

func (m *moduleReader) memory(r *wasmbin.Reader) {
	m.module.Memory = readLimits(r)
	if m.memories++; m.memories > 1 {
		r.Fail("it has several memories: hako runs modules with one")
	}
}

func readLimits(r *wasmbin.Reader) *Memory {
	flags := r.Byte()
	switch {
	case flags&4 != 0:
		r.Fail("it has a 64-bit memory: build for wasm32")
	case flags&2 != 0:
		r.Fail("it has a shared memory: build without threads")
	case flags > 1:
		r.Fail("it has limits of the unknown form %d", flags)
	}
	size := &Memory{Min: r.Uint32(), HasMax: flags == 1}
	if size.HasMax {
		size.Max = r.Uint32()
	}
	return size
}

func (m *moduleReader) export(r *wasmbin.Reader) {
	e := Export{Name: r.Name(), Kind: Kind(r.Byte())}
	index := r.Uint32()
	if e.Kind > KindGlobal {
		r.Fail("export %s is of kind %d, which hako does not run: build without the exceptions proposal", e.Name,
			byte(e.Kind))
	}
	if e.Kind == KindFunc {
		if uint64(index) >= uint64(len(m.functions)) {
			r.Fail("export %s is the unknown function %d", e.Name, index)
		}
		t := m.types[m.functions[index]]
		e.Type = &t
	}
	m.module.Exports = append(m.module.Exports, e)
}

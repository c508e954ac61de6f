package wasmfile

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/rewrite"
	"github.com/hako-run/hako/host/wasm/wasmbin"
	"github.com/hako-run/hako/pdk/abi"
)

// moduleReader collects what a Module holds. Its methods are called for each section, and panic with a *wasmbin.Error.
type moduleReader struct {
	module Module
	types  []FuncType
	// functions are the indexes into types of all functions, imported ones first.
	functions []uint32
	memories  int
}

// readCore reads a core module.
func (m *moduleReader) readCore(wasm []byte) error {
	if err := m.readSections(wasm); err != nil {
		return fmt.Errorf("malformed module: %w", err)
	}
	if err := rewrite.Check(wasm); err != nil {
		return fmt.Errorf("the module cannot be used: %w", err)
	}
	return nil
}

// Recordings returns the recordings in a core module that Read has accepted, without validating it again. They are nil
// if there are none, and point into the file.
func Recordings(wasm []byte) (_ []byte, err error) {
	defer wasmbin.Catch(&err)
	var m moduleReader
	wasmbin.New(wasm, len(wasm)).Module(func(s wasmbin.Section) {
		if s.ID == wasmbin.CustomSection {
			m.custom(s)
		}
	})
	return m.module.Recordings, nil
}

func (m *moduleReader) readSections(wasm []byte) (err error) {
	defer wasmbin.Catch(&err)
	wasmbin.New(wasm, len(wasm)).Module(m.section)
	return nil
}

func (m *moduleReader) section(s wasmbin.Section) {
	r := s.Content
	var what string
	var entry func(*wasmbin.Reader)
	switch s.ID {
	case wasmbin.CustomSection:
		m.custom(s)
		return
	case wasmbin.TypeSection:
		what, entry = "types", m.funcType
	case wasmbin.ImportSection:
		what, entry = "imports", m.importEntry
	case wasmbin.FunctionSection:
		what, entry = "functions", m.function
	case wasmbin.MemorySection:
		what, entry = "memories", m.memory
	case wasmbin.ExportSection:
		what, entry = "exports", m.export
	default:
		return
	}
	for range r.Count(what, maxEntries) {
		entry(r)
	}
	r.Finish("the section of " + what)
}

// custom keeps the custom sections that are hako's. Other sections have no name.
func (m *moduleReader) custom(s wasmbin.Section) {
	keep := map[string]*[]byte{abi.ManifestSection: &m.module.Manifest,
		abi.RecordingsSection: &m.module.Recordings}[s.Name]
	if keep == nil {
		return
	}
	if *keep != nil {
		s.Content.FailAt(s.Start, "the custom section %s occurs twice: pack the plugin again", s.Name)
	}
	*keep = s.Content.Rest()
}

func (m *moduleReader) funcType(r *wasmbin.Reader) {
	if form := r.Peek(); form != wasmbin.FuncType {
		r.Fail("it has a type of form %#x, which is not supported: build without the GC proposal", form)
	}
	r.Byte()
	m.types = append(m.types, FuncType{readValueTypes(r), readValueTypes(r)})
}

func readValueTypes(r *wasmbin.Reader) []ValueType {
	b := r.Bytes()
	types := make([]ValueType, len(b))
	for i, t := range b {
		if types[i] = ValueType(t); types[i].String() == "" {
			r.Fail("it has a value of type %#x, which is not supported", t)
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
		r.Next(2)
	default:
		r.Fail("import %s.%s is of kind %d, which is not supported: build without the exceptions proposal",
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
	start := r.Pos
	l := r.Limits()
	switch {
	case l.Flags&wasmbin.Limits64 != 0:
		r.FailAt(start, "it has a 64-bit memory: build for wasm32")
	case l.Flags&wasmbin.LimitsShared != 0:
		r.FailAt(start, "it has a shared memory: build without threads")
	case l.Flags&wasmbin.LimitsPageSize != 0:
		r.FailAt(start, "it has a memory with pages of another size than 64 KiB")
	}
	return &Memory{Min: uint32(l.Min), Max: uint32(l.Max), HasMax: l.Flags&wasmbin.LimitsMax != 0}
}

func (m *moduleReader) export(r *wasmbin.Reader) {
	e := Export{Name: r.Name(), Kind: Kind(r.Byte())}
	index := r.Uint32()
	if e.Kind > KindGlobal {
		r.Fail("export %s is of kind %d, which is not supported: build without the exceptions proposal", e.Name,
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

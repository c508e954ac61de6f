package manifest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hako-run/hako/pdk/abi"
)

// moduleReader collects what a Module holds.
type moduleReader struct {
	*wasmReader
	module Module
	types  []FuncType
	// functions are the indexes into types of all functions, imported ones first.
	functions []uint32
	memories  int
}

func newModuleReader(data []byte) (*moduleReader, error) {
	r, err := checkHeader(data)
	return &moduleReader{wasmReader: r}, err
}

func (m *moduleReader) sections() error {
	last := -1
	for {
		s, ok, err := m.section()
		if err != nil {
			return fmt.Errorf("malformed module: %w", err)
		}
		if !ok {
			return nil
		}
		if s.id != customSection {
			rank := slices.Index(sectionOrder, s.id)
			if rank <= last {
				return fmt.Errorf("malformed module: section %d at byte %d is unknown, repeated or out of order", s.id,
					s.start)
			}
			last = rank
		}
		if err := m.read(s); err != nil {
			return fmt.Errorf("malformed module: section %d at byte %d: %w", s.id, s.start, err)
		}
	}
}

func (m *moduleReader) read(s section) error {
	r := moduleSection{m, wasmReader{data: s.content}}
	readers := map[byte]func() error{
		typeSection: r.funcType, importSection: r.importEntry, functionSection: r.function, memorySection: r.memory,
		exportSection: r.export,
	}
	switch element, ok := readers[s.id]; {
	case s.id == customSection:
		return m.custom(s)
	case !ok:
		return nil
	default:
		if err := r.vector(element); err != nil {
			return err
		}
	}
	if r.offset != len(r.data) {
		return errors.New("it holds more than its entries")
	}
	return nil
}

// custom keeps the sections that are hako's.
func (m *moduleReader) custom(s section) error {
	keep := map[string]*[]byte{abi.ManifestSection: &m.module.Manifest,
		abi.RecordingsSection: &m.module.Recordings}[s.name]
	if keep == nil {
		return nil
	}
	if *keep != nil {
		return fmt.Errorf("the custom section %s is there twice: pack the plugin again", s.name)
	}
	*keep = s.content[:len(s.content):len(s.content)]
	return nil
}

// moduleSection reads the entries of one section.
type moduleSection struct {
	m *moduleReader
	wasmReader
}

func (r *moduleSection) funcType() error {
	form, err := r.byte()
	if err != nil {
		return err
	}
	if form != 0x60 {
		return fmt.Errorf("it has a type of form %#x, which hako does not run: build without the GC proposal", form)
	}
	var t FuncType
	if t.Params, err = r.valueTypes(); err != nil {
		return err
	}
	t.Results, err = r.valueTypes()
	r.m.types = append(r.m.types, t)
	return err
}

func (r *moduleSection) valueTypes() ([]ValueType, error) {
	b, err := r.sized()
	if err != nil {
		return nil, err
	}
	types := make([]ValueType, len(b))
	for i, t := range b {
		if types[i] = ValueType(t); types[i].String() == "" {
			return nil, fmt.Errorf("it has a value of type %#x, which hako does not run", t)
		}
	}
	return types, nil
}

func (r *moduleSection) importEntry() error {
	module, err := r.name()
	if err != nil {
		return err
	}
	name, err := r.name()
	if err != nil {
		return err
	}
	kind, err := r.byte()
	if err != nil {
		return err
	}
	r.m.module.Imports = append(r.m.module.Imports, Import{Module: module, Name: name, Kind: Kind(kind)})
	switch Kind(kind) {
	case KindFunc:
		if err := r.function(); err != nil {
			return err
		}
		t := r.m.types[r.m.functions[len(r.m.functions)-1]]
		r.m.module.Imports[len(r.m.module.Imports)-1].Type = &t
		return nil
	case KindTable:
		return r.table()
	case KindMemory:
		return r.memory()
	case KindGlobal:
		return r.global()
	}
	return fmt.Errorf("import %s.%s is of kind %d, which hako does not run: build without the exceptions proposal",
		module, name, kind)
}

func (r *moduleSection) function() error {
	index, err := r.u32()
	if err == nil && uint64(index) >= uint64(len(r.m.types)) {
		err = fmt.Errorf("function %d has the unknown type %d", len(r.m.functions), index)
	}
	r.m.functions = append(r.m.functions, index)
	return err
}

func (r *moduleSection) table() error {
	if _, err := r.byte(); err != nil {
		return err
	}
	_, err := r.limits()
	return err
}

func (r *moduleSection) global() error {
	_, err := r.bytes(2)
	return err
}

func (r *moduleSection) memory() error {
	size, err := r.limits()
	if err != nil {
		return err
	}
	if r.m.memories++; r.m.memories > 1 {
		return errors.New("it has several memories: hako runs modules with one")
	}
	r.m.module.Memory = size
	return nil
}

func (r *moduleSection) limits() (*Memory, error) {
	flags, err := r.byte()
	if err != nil {
		return nil, err
	}
	switch {
	case flags&4 != 0:
		return nil, errors.New("it has a 64-bit memory: build for wasm32")
	case flags&2 != 0:
		return nil, errors.New("it has a shared memory: build without threads")
	case flags > 1:
		return nil, fmt.Errorf("it has limits of the unknown form %d", flags)
	}
	size := &Memory{HasMax: flags == 1}
	if size.Min, err = r.u32(); err == nil && size.HasMax {
		size.Max, err = r.u32()
	}
	return size, err
}

func (r *moduleSection) export() error {
	name, err := r.name()
	if err != nil {
		return err
	}
	kind, err := r.byte()
	if err != nil {
		return err
	}
	index, err := r.u32()
	if err != nil {
		return err
	}
	if Kind(kind) > KindGlobal {
		return fmt.Errorf("export %s is of kind %d, which hako does not run: build without the exceptions proposal",
			name, kind)
	}
	e := Export{Name: name, Kind: Kind(kind)}
	if e.Kind == KindFunc {
		if uint64(index) >= uint64(len(r.m.functions)) {
			return fmt.Errorf("export %s is the unknown function %d", name, index)
		}
		t := r.m.types[r.m.functions[index]]
		e.Type = &t
	}
	r.m.module.Exports = append(r.m.module.Exports, e)
	return nil
}

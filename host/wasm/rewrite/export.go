package rewrite

import (
	"bytes"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Declarations returns the sections of a module that say what it imports and exports. They are no valid module.
func Declarations(module []byte) (declarations []byte, err error) {
	defer wasmbin.Catch(&err)
	sections := readSections(module)
	for _, id := range []byte{wasmbin.StartSection, wasmbin.ElementSection, wasmbin.DataCountSection,
		wasmbin.CodeSection, wasmbin.DataSection} {
		delete(sections, id)
	}
	return appendSections([]byte(wasmbin.Header), sections), nil
}

// Export is the type of an item that a module exports.
type Export struct {
	// Kind is 0 for a function, 1 for a table, 2 for a memory and 3 for a global.
	Kind byte
	// Params and Results are the value types of a function.
	Params, Results []byte
	// Descriptor describes an import, in the binary format, for which any other item can be given.
	Descriptor []byte
}

// Exports returns the exports of a module that Module has returned, or of its Stub.
func Exports(module []byte) (exports map[string]Export, err error) {
	defer wasmbin.Catch(&err)
	e := &exportReader{exports: map[string]Export{}}
	newReader(module).Module(func(s wasmbin.Section) {
		r := s.Content
		var entry func(*reader)
		switch s.ID {
		case wasmbin.TypeSection:
			entry = e.signature
		case wasmbin.ImportSection:
			entry = e.imported
		case wasmbin.FunctionSection:
			entry = func(r *reader) { e.add(e.function(r)) }
		case wasmbin.TableSection:
			entry = func(r *reader) { e.add(table0(r)) }
		case wasmbin.MemorySection:
			entry = func(r *reader) { e.add(memory0(r)) }
		case wasmbin.GlobalSection:
			entry = func(r *reader) {
				e.add(global(r))
				skipConstant(r)
			}
		case wasmbin.ExportSection:
			entry = e.export
		default:
			return
		}
		for range r.Uint32() {
			entry(r)
		}
	})
	return e.exports, nil
}

type exportReader struct {
	types   []Export
	items   [kindGlobal + 1][]Export
	exports map[string]Export
}

func (e *exportReader) signature(r *reader) {
	r.Byte()
	t := Export{Kind: kindFunction, Params: bytes.Clone(r.Bytes())}
	t.Results = bytes.Clone(r.Bytes())
	e.types = append(e.types, t)
}

func (e *exportReader) function(r *reader) Export { return itemAt(r, e.types) }

// itemAt reads an index and returns the item that it stands for.
func itemAt(r *reader, items []Export) Export {
	index := r.Uint32()
	if uint64(index) >= uint64(len(items)) {
		r.Fail("index %d does not exist", index)
	}
	return items[index]
}

func (e *exportReader) imported(r *reader) {
	r.Name()
	r.Name()
	switch kind := r.Byte(); kind {
	case kindFunction:
		e.add(e.function(r))
	case kindTable:
		e.add(table0(r))
	case kindMemory:
		e.add(memory0(r))
	case kindGlobal:
		e.add(global(r))
	default:
		r.Fail("import of the unknown kind %d", kind)
	}
}

func (e *exportReader) add(item Export) { e.items[item.Kind] = append(e.items[item.Kind], item) }

// table0 and memory0 read a type and return that of an empty table or memory.
func table0(r *reader) Export {
	element := r.Byte()
	r.Limits()
	return Export{Kind: kindTable, Descriptor: []byte{element, 0, 0}}
}

func memory0(r *reader) Export {
	r.Limits()
	return Export{Kind: kindMemory, Descriptor: []byte{0, 0}}
}

func global(r *reader) Export {
	return Export{Kind: kindGlobal, Descriptor: bytes.Clone(r.Next(2))}
}

func (e *exportReader) export(r *reader) {
	name, kind := r.Name(), r.Byte()
	if kind > kindGlobal {
		r.Fail("export of the unknown kind %d", kind)
	}
	e.exports[name] = itemAt(r, e.items[kind])
}

package rewrite

import "bytes"

// Signature returns the sections of a module that say what it imports and exports. They are no valid module.
func Signature(module []byte) ([]byte, error) {
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	for _, id := range []byte{sectionStart, sectionElement, sectionCount, sectionCode, sectionData} {
		delete(sections, id)
	}
	return appendSections(bytes.Clone(magic), sections), nil
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
func Exports(module []byte) (map[string]Export, error) {
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	e := &exportReader{}
	for _, read := range []struct {
		id   byte
		item func(r *reader)
	}{
		{sectionType, e.signature},
		{sectionImport, e.imported},
		{sectionFunction, func(r *reader) { e.add(kindFunction, e.function(r)) }},
		{sectionTable, func(r *reader) { e.add(kindTable, table0(r)) }},
		{sectionMemory, func(r *reader) { e.add(kindMemory, memory0(r)) }},
		{sectionGlobal, func(r *reader) {
			e.add(kindGlobal, Export{Kind: kindGlobal, Descriptor: r.bytes(2)})
			if err := r.skipConstant(); err != nil {
				r.fail(err)
			}
		}},
	} {
		if body, ok := sections[read.id]; ok {
			r := &reader{data: body}
			for range r.uint() {
				if read.item(r); r.err != nil {
					return nil, r.err
				}
			}
		}
	}
	return e.exports(sections[sectionExport])
}

type exportReader struct {
	types []Export
	items [kindGlobal + 1][]Export
}

func (e *exportReader) signature(r *reader) {
	r.byte()
	t := Export{Kind: kindFunction, Params: bytes.Clone(r.bytes(r.length()))}
	t.Results = bytes.Clone(r.bytes(r.length()))
	e.types = append(e.types, t)
}

func (e *exportReader) function(r *reader) Export {
	index := r.uint()
	if index >= uint64(len(e.types)) {
		r.fail(errNumber)
		return Export{}
	}
	return e.types[index]
}

func (e *exportReader) imported(r *reader) {
	r.name()
	r.name()
	switch kind := r.byte(); kind {
	case kindFunction:
		e.add(kind, e.function(r))
	case kindTable:
		e.add(kind, table0(r))
	case kindMemory:
		e.add(kind, memory0(r))
	case kindGlobal:
		e.add(kind, Export{Kind: kind, Descriptor: bytes.Clone(r.bytes(2))})
	default:
		r.fail(errNumber)
	}
}

func (e *exportReader) add(kind byte, item Export) { e.items[kind] = append(e.items[kind], item) }

// table0 and memory0 read a type and return that of an empty table or memory.
func table0(r *reader) Export {
	element := r.byte()
	r.limits()
	return Export{Kind: kindTable, Descriptor: []byte{element, 0, 0}}
}

func memory0(r *reader) Export {
	r.limits()
	return Export{Kind: kindMemory, Descriptor: []byte{0, 0}}
}

func (e *exportReader) exports(section []byte) (map[string]Export, error) {
	exports := map[string]Export{}
	if section == nil {
		return exports, nil
	}
	r := &reader{data: section}
	for range r.uint() {
		name, kind, index := r.name(), r.byte(), r.uint()
		if r.err == nil && (kind > kindGlobal || index >= uint64(len(e.items[kind]))) {
			r.fail(errNumber)
		}
		if r.err != nil {
			return nil, r.err
		}
		exports[name] = e.items[kind][index]
	}
	return exports, nil
}

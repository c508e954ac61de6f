package link

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/component"
)

// reexport compiles a module that imports items and exports them under other names. sources are the core instances by
// the names that the module imports.
func (b *builder) reexport(items map[string]coreItem) (code wazero.CompiledModule, sources map[string]int, err error) {
	sources = map[string]int{}
	var m reexports
	for _, name := range slices.Sorted(maps.Keys(items)) {
		item := items[name]
		from := strconv.Itoa(item.instance)
		sources[from] = item.instance
		m.add(from, name, &item)
	}
	if code, err = b.Runtime.CompileModule(b.ctx, m.encode()); err != nil {
		return nil, nil, fmt.Errorf("a core instance made of exports: %w", err)
	}
	b.program.compiled = append(b.program.compiled, code)
	return code, sources, nil
}

// reexports is a module of imports and exports; its parts are encoded entries of the sections.
type reexports struct {
	types, imports, exports [][]byte
	counts                  [component.CoreTag + 1]int
}

func (m *reexports) add(from, name string, item *coreItem) {
	kind := item.typ.Kind
	entry := appendName(appendName(nil, from), item.name)
	entry = append(entry, kind)
	if component.CoreSort(kind) == component.CoreFunc {
		entry = appendUint(entry, len(m.types))
		signature := append(appendUint([]byte{0x60}, len(item.typ.Params)), item.typ.Params...)
		m.types = append(m.types, append(appendUint(signature, len(item.typ.Results)), item.typ.Results...))
	} else {
		entry = append(entry, item.typ.Descriptor...)
	}
	m.imports = append(m.imports, entry)
	m.exports = append(m.exports, appendUint(append(appendName(nil, name), kind), m.counts[kind]))
	m.counts[kind]++
}

// Sections of a core module, in the numbers of the binary format.
const (
	sectionType   = 1
	sectionImport = 2
	sectionExport = 7
)

func (m *reexports) encode() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = appendSection(out, sectionType, m.types)
	out = appendSection(out, sectionImport, m.imports)
	return appendSection(out, sectionExport, m.exports)
}

func appendSection(out []byte, id byte, entries [][]byte) []byte {
	body := appendUint(nil, len(entries))
	for _, entry := range entries {
		body = append(body, entry...)
	}
	return append(appendUint(append(out, id), len(body)), body...)
}

func appendUint(out []byte, n int) []byte { return binary.AppendUvarint(out, uint64(n)) }

func appendName(out []byte, name string) []byte { return append(appendUint(out, len(name)), name...) }

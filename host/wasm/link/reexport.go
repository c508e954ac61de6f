package link

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/wasmbin"
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
	if b.checks {
		return nil, sources, nil
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
	entry := wasmbin.AppendName(wasmbin.AppendName(nil, from), item.name)
	entry = append(entry, kind)
	if component.CoreSort(kind) == component.CoreFunc {
		entry = wasmbin.AppendUint(entry, len(m.types))
		signature := append(wasmbin.AppendUint([]byte{wasmbin.FuncType}, len(item.typ.Params)), item.typ.Params...)
		m.types = append(m.types, append(wasmbin.AppendUint(signature, len(item.typ.Results)), item.typ.Results...))
	} else {
		entry = append(entry, item.typ.Descriptor...)
	}
	m.imports = append(m.imports, entry)
	m.exports = append(m.exports, wasmbin.AppendUint(append(wasmbin.AppendName(nil, name), kind), m.counts[kind]))
	m.counts[kind]++
}

func (m *reexports) encode() []byte {
	out := []byte(wasmbin.Header)
	out = appendEntries(out, wasmbin.TypeSection, m.types)
	out = appendEntries(out, wasmbin.ImportSection, m.imports)
	return appendEntries(out, wasmbin.ExportSection, m.exports)
}

func appendEntries(out []byte, id byte, entries [][]byte) []byte {
	body := wasmbin.AppendUint(nil, len(entries))
	for _, entry := range entries {
		body = append(body, entry...)
	}
	return wasmbin.AppendSection(out, id, body)
}

package rewrite

import (
	"bytes"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Segment is an active data segment: bytes that are copied to an offset of the memory when the module is instantiated.
type Segment struct {
	Offset int
	Bytes  []byte
}

// Segments returns the active data segments of a module that Stub leaves out, in the order in which they are copied.
// They lie within the memory that the module starts with. The result is the same before and after Module, and does not
// refer to the module.
func Segments(module []byte) (segments []Segment, err error) {
	defer wasmbin.Catch(&err)
	sections := readSections(module)
	if data, ok := sections[wasmbin.DataSection]; ok {
		sections[wasmbin.DataSection] = bytes.Clone(data)
	}
	_, segments = splitData(sections)
	return segments, nil
}

// Kinds of data segments; core specification, section 5.5.14.
const (
	dataActive  = 0
	dataPassive = 1
)

// splitData returns the active segments, and the data section without them: without any segment if no code can refer to
// them, because the module does not declare their number, and otherwise with all passive segments and empty active
// ones. Modules of the Go compiler have fifty thousand segments, each of which costs the runtime 70 bytes, and every
// instance 24. It returns nothing if the segments are needed during instantiation, because the module has a start
// function, or if the runtime has to compute where they go or to refuse them.
func splitData(sections map[byte][]byte) (section []byte, segments []Segment) {
	if _, ok := sections[wasmbin.StartSection]; ok {
		return nil, nil
	}
	size := startMemory(sections)
	r, count := entries(sections, wasmbin.DataSection)
	section = wasmbin.AppendUint(nil, count)
	for range count {
		start := r.Pos
		switch r.Uint32() {
		case dataPassive:
			r.Bytes()
			section = append(section, r.Since(start)...)
		case dataActive:
			if r.Byte() != opI32Const {
				return nil, nil
			}
			offset := r.Signed(32)
			if r.Byte() != opEnd {
				return nil, nil
			}
			header := r.Since(start)
			data := r.Bytes()
			if offset < 0 || offset+int64(len(data)) > size {
				return nil, nil
			}
			section = append(append(section, header...), 0)
			segments = append(segments, Segment{int(offset), data})
		default:
			return nil, nil
		}
	}
	if _, ok := sections[wasmbin.DataCountSection]; !ok {
		section = []byte{0}
	}
	return section, segments
}

// startMemory returns the size with which the module's own memory starts, in bytes; -1 if it has none.
func startMemory(sections map[byte][]byte) int64 {
	r, count := entries(sections, wasmbin.MemorySection)
	if count == 0 {
		return -1
	}
	return int64(min(r.Limits().Min, maxPages)) << 16
}

// maxPages is the largest number of pages of a memory.
const maxPages = 1 << 16

package rewrite

import "bytes"

// Segment is an active data segment: bytes that are copied to an offset of the memory when the module is instantiated.
type Segment struct {
	Offset int
	Bytes  []byte
}

// Segments returns the active data segments of a module that Stub leaves out, in the order in which they are copied.
// They lie within the memory that the module starts with. The result is the same before and after Module, and does not
// refer to the module.
func Segments(module []byte) ([]Segment, error) {
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	sections[sectionData] = bytes.Clone(sections[sectionData])
	_, segments := splitData(sections)
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
	if _, ok := sections[sectionStart]; ok {
		return nil, nil
	}
	size := uint64(startMemory(sections))
	r := &reader{data: sections[sectionData]}
	count := r.uint()
	section = appendUint(nil, count)
	for range count {
		start := r.pos
		kind := r.uint()
		if kind == dataPassive {
			r.bytes(r.length())
			section = append(section, r.data[start:r.pos]...)
			continue
		}
		constant, offset, end := r.byte(), r.int(), r.byte()
		empty := r.pos
		data := r.bytes(r.length())
		if r.err != nil || kind != dataActive || constant != opI32Const || end != opEnd ||
			offset < 0 || uint64(offset)+uint64(len(data)) > size {
			return nil, nil
		}
		section = appendUint(append(section, r.data[start:empty]...), 0)
		segments = append(segments, Segment{int(offset), data})
	}
	if r.err != nil {
		return nil, nil
	}
	if _, ok := sections[sectionCount]; !ok {
		section = []byte{0}
	}
	return section, segments
}

// startMemory returns the size with which the module's own memory starts, in bytes.
func startMemory(sections map[byte][]byte) int64 {
	memory := &reader{data: sections[sectionMemory]}
	memory.uint() // there is at most one memory
	memory.byte()
	return int64(min(memory.uint(), maxPages)) << 16
}

// maxPages is the largest number of pages of a memory.
const maxPages = 1 << 16

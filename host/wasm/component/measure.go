package component

import "math"

// measure is the extent of a type, with all types that it mentions.
type measure struct {
	size   int  // mentioned types, each as often as it is mentioned
	depth  int  // of value types in each other
	borrow bool // mentions a borrowed handle
	// pointers reports whether values have parts elsewhere in memory: they have strings, lists or maps.
	pointers bool
	// resources reports whether a resource type is mentioned.
	resources bool
}

func (m *measure) add(of measure) {
	m.size += of.size
	m.depth = max(m.depth, of.depth)
	m.borrow = m.borrow || of.borrow
	m.pointers = m.pointers || of.pointers
	m.resources = m.resources || of.resources
}

// check fails if the type is too large, and counts it with its entries.
func (d *decoder) check(r *reader, m measure, entries int) {
	d.countTypes(r, 1+entries)
	r.Limit("types in one type, each counted as often as it is mentioned", m.size, maxTypeSize)
	r.Limit("types in each other", m.depth, maxTypeDepth)
}

func (d *decoder) countTypes(r *reader, n int) {
	d.total.types += n
	r.Limit("types with their fields and exports", d.total.types, maxTypes)
}

// checkType fails if a value type is too large, and sets its measure.
func (d *decoder) checkType(r *reader, t *Type) *Type {
	t.measure = measure{size: 1}
	for _, part := range t.parts() {
		t.measure.add(part.measure)
		r.Limit("types in one type, each counted as often as it is mentioned", t.size, maxTypeSize)
	}
	t.depth++
	t.borrow = t.borrow || t.Kind == KindBorrow
	t.pointers = t.pointers || t.Kind == KindMap || t.Kind == KindList && t.Length == 0
	t.resources = t.resources || t.Resource != nil
	d.check(r, t.measure, len(t.Fields))
	t.layOut()
	t.flat = t.flatten()
	if t.bytes > maxValueSize {
		r.Fail("a value of a type has %d bytes: the specification allows less than 2^28", t.bytes)
	}
	return t
}

// parts returns the types of which a value type is made.
func (t *Type) parts() []*Type {
	parts := make([]*Type, 0, len(t.Fields)+2)
	for _, f := range t.Fields {
		if f.Type != nil {
			parts = append(parts, f.Type)
		}
	}
	for _, part := range []*Type{t.Elem, t.Err} {
		if part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// layOut computes the size and alignment of a value in memory with pointers of 64 bits, which the specification bounds.
func (t *Type) layOut() {
	const pointer = 8
	t.align = 1
	switch t.Kind {
	case KindBool, KindS8, KindU8:
		t.bytes = 1
	case KindS16, KindU16:
		t.bytes, t.align = 2, 2
	case KindS64, KindU64, KindF64:
		t.bytes, t.align = 8, 8
	case KindString, KindMap:
		t.bytes, t.align = 2*pointer, pointer
	case KindList:
		t.bytes, t.align = 2*pointer, pointer
		if t.Length > 0 {
			t.bytes, t.align = saturate(uint64(t.Length)*uint64(t.Elem.bytes)), t.Elem.align
		}
	case KindRecord, KindTuple:
		for _, f := range t.Fields {
			t.bytes = alignTo(t.bytes, f.Type.align) + f.Type.bytes
			t.align = max(t.align, f.Type.align)
		}
		t.bytes = alignTo(t.bytes, t.align)
	case KindFlags:
		t.bytes = caseBytes((1 << len(t.Fields)) - 1)
		t.align = t.bytes
	case KindVariant, KindEnum, KindOption, KindResult:
		t.layOutVariant()
	default: // s32, u32, f32, char and the handles
		t.bytes, t.align = 4, 4
	}
}

func (t *Type) layOutVariant() {
	tag := caseBytes(max(len(t.Fields), 2) - 1)
	var bytes int64
	t.align = tag
	for _, part := range t.parts() {
		bytes, t.align = max(bytes, part.bytes), max(t.align, part.align)
	}
	t.bytes = alignTo(alignTo(tag, t.align)+bytes, t.align)
}

// caseBytes returns how many bytes hold numbers up to largest.
func caseBytes(largest int) int64 {
	switch {
	case largest <= math.MaxUint8:
		return 1
	case largest <= math.MaxUint16:
		return 2
	}
	return 4
}

func alignTo(n, align int64) int64 { return (n + align - 1) / align * align }

func saturate(n uint64) int64 { return int64(min(n, math.MaxInt32)) }

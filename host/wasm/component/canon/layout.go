package canon

import (
	"fmt"
	"sync"

	"github.com/hako-run/hako/host/wasm/component"
)

const (
	// maxByteLength bounds strings, lists and all other values in a guest's memory.
	maxByteLength = 1<<28 - 1
	// maxDepth bounds how deep types are nested. A map counts as two.
	maxDepth = 250
)

// Layouts caches how the types of a component are represented. The zero value is ready, and safe for concurrent use.
type Layouts struct {
	types sync.Map // *component.Type -> *layout
	funcs sync.Map // *component.Func -> *layout
}

// layout is the representation of the values of a type.
type layout struct {
	kind        component.Kind // list instead of map, tuple instead of record, variant instead of its special forms
	typ         *component.Type
	size, align uint32
	// flat is the number of core values, at most component.MaxFlatParams+1. Func.CoreSignature has their types.
	flat int
	// elem is the element of a list, parts are the fields of a tuple or the payloads of cases, nil for none.
	elem  *layout
	parts []*layout
	// offsets are those of the fields. A variant has two: discriminant's size, and the payload's offset.
	offsets []uint32
	// values is the number of values in one, counting lists and strings as one. goBytes is the Go memory that they
	// take.
	values, goBytes int64
}

// inMemory reports whether the values are passed in memory where at most limit core values are allowed.
func (l *layout) inMemory(limit int) bool { return l.flat > limit }

// of returns the layout of a type.
func (ls *Layouts) of(t *component.Type) (*layout, error) { return ls.nested(t, 0) }

// params returns the layout of a function's parameters as a tuple.
func (ls *Layouts) params(f *component.Func) (*layout, error) {
	if l, ok := ls.funcs.Load(f); ok {
		return l.(*layout), nil
	}
	l, err := ls.tuple(&component.Type{Kind: component.KindTuple, Fields: f.Params}, 0)
	if err == nil {
		ls.funcs.Store(f, l)
	}
	return l, err
}

func (ls *Layouts) nested(t *component.Type, depth int) (*layout, error) {
	if l, ok := ls.types.Load(t); ok {
		return l.(*layout), nil
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("a type is nested more than %d deep", maxDepth)
	}
	l, err := ls.derive(t, depth+1)
	if err != nil {
		return nil, err
	}
	if l.size == 0 || l.size > maxByteLength {
		return nil, fmt.Errorf("a type of %d bytes: types have 1 to %d", l.size, maxByteLength)
	}
	ls.types.Store(t, l)
	return l, nil
}

func (ls *Layouts) derive(t *component.Type, depth int) (*layout, error) {
	scalar := func(size uint32) (*layout, error) {
		return &layout{kind: t.Kind, typ: t, size: size, align: size, flat: 1, values: 1, goBytes: 8}, nil
	}
	switch t.Kind {
	case component.KindBool, component.KindS8, component.KindU8:
		return scalar(1)
	case component.KindS16, component.KindU16:
		return scalar(2)
	case component.KindS32, component.KindU32, component.KindChar, component.KindOwn, component.KindBorrow,
		component.KindStream, component.KindFuture, component.KindErrorContext:
		return scalar(4)
	case component.KindS64, component.KindU64:
		return scalar(8)
	case component.KindF32:
		return scalar(4)
	case component.KindF64:
		return scalar(8)
	case component.KindFlags:
		if n := len(t.Fields); n < 1 || n > 32 {
			return nil, fmt.Errorf("flags with %d labels: they have 1 to 32", n)
		}
		return scalar(unsignedSize(uint64(1) << len(t.Fields)))
	case component.KindString:
		return &layout{kind: t.Kind, typ: t, size: 8, align: 4, flat: 2, values: 1, goBytes: 16}, nil
	case component.KindList:
		return ls.list(t, t.Elem, depth)
	case component.KindMap:
		return ls.list(t, &component.Type{Kind: component.KindTuple,
			Fields: []component.Field{{Type: t.Elem}, {Type: t.Err}}}, depth)
	case component.KindRecord, component.KindTuple:
		return ls.tuple(t, depth)
	case component.KindVariant, component.KindEnum, component.KindOption, component.KindResult:
		return ls.variant(t, depth)
	}
	return nil, fmt.Errorf("a type of the unknown kind %d", t.Kind)
}

// unsignedSize is the size of the smallest integer with at least n values.
func unsignedSize(n uint64) uint32 {
	switch {
	case n <= 1<<8:
		return 1
	case n <= 1<<16:
		return 2
	}
	return 4
}

func (ls *Layouts) list(t, elem *component.Type, depth int) (*layout, error) {
	e, err := ls.nested(elem, depth)
	if err != nil {
		return nil, err
	}
	l := &layout{kind: component.KindList, typ: t, size: 8, align: 4, flat: 2, elem: e, values: 1,
		goBytes: 24}
	if t.Length == 0 {
		return l, nil
	}
	size := uint64(t.Length) * uint64(e.size)
	l.size, l.align = uint32(min(size, maxByteLength+1)), e.align
	l.flat = int(min(uint64(t.Length)*uint64(e.flat), component.MaxFlatParams+1))
	return l, nil
}

func (ls *Layouts) tuple(t *component.Type, depth int) (*layout, error) {
	l := &layout{kind: component.KindTuple, typ: t, align: 1, values: 1, goBytes: 24}
	size := uint64(0)
	for _, field := range t.Fields {
		p, err := ls.nested(field.Type, depth)
		if err != nil {
			return nil, err
		}
		size = alignTo(size, p.align)
		l.offsets = append(l.offsets, uint32(size))
		l.parts = append(l.parts, p)
		if size += uint64(p.size); size > maxByteLength {
			break
		}
		l.align = max(l.align, p.align)
		l.flat = min(l.flat+p.flat, component.MaxFlatParams+1)
		l.values += p.values
		l.goBytes += p.goBytes + 16
	}
	l.size = uint32(min(alignTo(size, l.align), maxByteLength+1))
	return l, nil
}

func (ls *Layouts) variant(t *component.Type, depth int) (*layout, error) {
	payloads := casePayloads(t)
	if len(payloads) == 0 {
		return nil, fmt.Errorf("a variant without cases")
	}
	discriminant := unsignedSize(uint64(len(payloads)))
	l := &layout{kind: component.KindVariant, typ: t, align: discriminant, flat: 1, values: 1, goBytes: 24,
		parts: make([]*layout, len(payloads))}
	size, payloadAlign, values, goBytes := uint32(0), uint32(1), int64(0), int64(0)
	for i, payload := range payloads {
		if payload == nil {
			continue
		}
		p, err := ls.nested(payload, depth)
		if err != nil {
			return nil, err
		}
		l.parts[i] = p
		size, payloadAlign = max(size, p.size), max(payloadAlign, p.align)
		values, goBytes = max(values, p.values), max(goBytes, p.goBytes)
		l.flat = max(l.flat, min(1+p.flat, component.MaxFlatParams+1))
	}
	l.values += values
	l.goBytes += goBytes
	l.align = max(l.align, payloadAlign)
	offset := alignTo(uint64(discriminant), payloadAlign)
	l.offsets = []uint32{discriminant, uint32(offset)}
	l.size = uint32(min(alignTo(offset+uint64(size), l.align), maxByteLength+1))
	return l, nil
}

// casePayloads returns the payload types of the cases, nil for none.
func casePayloads(t *component.Type) []*component.Type {
	switch t.Kind {
	case component.KindOption:
		return []*component.Type{nil, t.Elem}
	case component.KindResult:
		return []*component.Type{t.Elem, t.Err}
	}
	payloads := make([]*component.Type, len(t.Fields))
	for i, field := range t.Fields {
		payloads[i] = field.Type
	}
	return payloads
}

func alignTo(n uint64, align uint32) uint64 { return (n + uint64(align) - 1) &^ (uint64(align) - 1) }

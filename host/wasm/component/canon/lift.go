package canon

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// liftFlat lifts a value from core values.
func (f *Frame) liftFlat(l *layout, flat []uint64) (any, error) {
	switch l.kind {
	case component.KindString:
		return f.liftString(uint32(flat[0]), uint32(flat[1]))
	case component.KindList:
		if l.typ.Length == 0 {
			return f.liftList(l, uint32(flat[0]), uint32(flat[1]))
		}
		return f.liftElements(l, l.typ.Length, func(i uint32) (any, error) {
			return f.liftFlat(l.elem, flat[int(i)*l.elem.flat:])
		})
	case component.KindTuple:
		values := make([]any, len(l.parts))
		for i, part := range l.parts {
			var err error
			if values[i], err = f.liftFlat(part, flat); err != nil {
				return nil, l.in(i, err)
			}
			flat = flat[part.flat:]
		}
		return values, nil
	case component.KindVariant:
		return l.liftCase(uint32(flat[0]), func(payload *layout) (any, error) { return f.liftFlat(payload, flat[1:]) })
	}
	return f.liftScalar(l, flat[0])
}

// load lifts a value from the guest's memory, of which view starts with the value.
func (f *Frame) load(l *layout, view []byte) (any, error) {
	switch l.kind {
	case component.KindString:
		return f.liftString(binary.LittleEndian.Uint32(view), binary.LittleEndian.Uint32(view[4:]))
	case component.KindList:
		if l.typ.Length == 0 {
			return f.liftList(l, binary.LittleEndian.Uint32(view), binary.LittleEndian.Uint32(view[4:]))
		}
		return f.loadElements(l, l.typ.Length, view)
	case component.KindTuple:
		values := make([]any, len(l.parts))
		for i, part := range l.parts {
			var err error
			if values[i], err = f.load(part, view[l.offsets[i]:]); err != nil {
				return nil, l.in(i, err)
			}
		}
		return values, nil
	case component.KindVariant:
		return l.liftCase(uint32(loadInteger(view, l.offsets[0])), func(payload *layout) (any, error) {
			return f.load(payload, view[l.offsets[1]:])
		})
	}
	return f.liftScalar(l, loadInteger(view, l.size))
}

func loadInteger(view []byte, size uint32) uint64 {
	switch size {
	case 1:
		return uint64(view[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(view))
	case 4:
		return uint64(binary.LittleEndian.Uint32(view))
	}
	return binary.LittleEndian.Uint64(view)
}

// in adds the name of a field or case to an error.
func (l *layout) in(i int, err error) error {
	if i < len(l.typ.Fields) && l.typ.Fields[i].Name != "" {
		return fmt.Errorf("%s: %w", l.typ.Fields[i].Name, err)
	}
	return fmt.Errorf("[%d]: %w", i, err)
}

func (l *layout) liftCase(number uint32, lift func(*layout) (any, error)) (any, error) {
	if uint64(number) >= uint64(len(l.parts)) {
		return nil, fmt.Errorf("case %d of a type with %d cases", number, len(l.parts))
	}
	payload := l.parts[number]
	if payload == nil {
		return component.Case{Number: number}, nil
	}
	value, err := lift(payload)
	if err != nil {
		return nil, l.in(int(number), err)
	}
	return component.Case{Number: number, Value: value}, nil
}

func (f *Frame) liftList(l *layout, offset, length uint32) (any, error) {
	view, err := f.view(offset, uint64(length)*uint64(l.elem.size), l.elem.align)
	if err != nil {
		return nil, err
	}
	return f.loadElements(l, length, view)
}

func (f *Frame) loadElements(l *layout, length uint32, view []byte) (any, error) {
	if l.elem.kind == component.KindU8 {
		view = view[:length]
		if err := f.copyingLifted(len(view)); err != nil {
			return nil, err
		}
		return append([]byte{}, view...), nil
	}
	return f.liftElements(l, length, func(i uint32) (any, error) { return f.load(l.elem, view[i*l.elem.size:]) })
}

// chunk is the number of elements that are converted between two charges.
const chunk = 1024

func (f *Frame) liftElements(l *layout, length uint32, lift func(i uint32) (any, error)) (any, error) {
	if l.elem.kind == component.KindU8 {
		return liftBytes(length, lift)
	}
	if err := f.reserveLifted(int64(length), int64(length)*(l.elem.goBytes+16)); err != nil {
		return nil, err
	}
	values := make([]any, length)
	for i := range values {
		if i%chunk == 0 {
			f.charge(int64(min(len(values)-i, chunk)) * l.elem.values * fuel.ValueSteps)
		}
		var err error
		if values[i], err = lift(uint32(i)); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return values, nil
}

// liftBytes lifts a short list of fixed length.
func liftBytes(length uint32, lift func(i uint32) (any, error)) (any, error) {
	data := make([]byte, length)
	for i := range data {
		value, err := lift(uint32(i))
		if err != nil {
			return nil, err
		}
		data[i] = byte(value.(uint64))
	}
	return data, nil
}

// copying charges for a copy of n bytes of the guest's memory.
func (f *Frame) copying(n int) error {
	f.charge(fuel.CopySteps(uint64(n)))
	return f.reserve(int64(n))
}

// copyingLifted is copying for a string or a byte list that is lifted.
func (f *Frame) copyingLifted(n int) error {
	f.charge(fuel.CopySteps(uint64(n)))
	return f.reserveLifted(int64(n), int64(n))
}

func (f *Frame) liftScalar(l *layout, bits uint64) (any, error) {
	switch l.kind {
	case component.KindBool:
		return uint32(bits) != 0, nil
	case component.KindU8:
		return uint64(uint8(bits)), nil
	case component.KindU16:
		return uint64(uint16(bits)), nil
	case component.KindU32:
		return uint64(uint32(bits)), nil
	case component.KindU64:
		return bits, nil
	case component.KindS8:
		return int64(int8(bits)), nil
	case component.KindS16:
		return int64(int16(bits)), nil
	case component.KindS32:
		return int64(int32(bits)), nil
	case component.KindS64:
		return int64(bits), nil
	case component.KindF32:
		return math.Float32frombits(canonicalNaN32(uint32(bits))), nil
	case component.KindF64:
		return math.Float64frombits(canonicalNaN64(bits)), nil
	case component.KindChar:
		if uint32(bits) > utf8.MaxRune || !utf8.ValidRune(rune(uint32(bits))) {
			return nil, fmt.Errorf("%#x is not a Unicode character", uint32(bits))
		}
		return rune(uint32(bits)), nil
	case component.KindFlags:
		return uint32(bits) & allFlags(l.typ), nil
	case component.KindOwn, component.KindBorrow:
		return f.liftHandle(l.typ, uint32(bits))
	}
	return nil, component.ErrAsync
}

// allFlags has the bits of all labels.
func allFlags(t *component.Type) uint32 { return uint32(uint64(1)<<len(t.Fields) - 1) }

// A NaN has one representation for each type, because languages do not keep its other bits.
func canonicalNaN32(bits uint32) uint32 {
	if bits&0x7fffffff > 0x7f800000 {
		return 0x7fc00000
	}
	return bits
}

func canonicalNaN64(bits uint64) uint64 {
	if bits&(1<<63-1) > 0x7ff<<52 {
		return 0x7ff8 << 48
	}
	return bits
}

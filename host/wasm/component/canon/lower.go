package canon

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// lowerFlat lowers a value to core values; flat is zero where it begins.
func (f *Frame) lowerFlat(l *layout, value any, flat []uint64) error {
	switch l.kind {
	case component.KindString, component.KindList:
		if l.kind == component.KindList && l.typ.Length != 0 {
			return f.lowerElements(l, value, func(i int, element any) error {
				return f.lowerFlat(l.elem, element, flat[i*l.elem.flat:])
			})
		}
		pointer, length, err := f.lowerSequence(l, value)
		flat[0], flat[1] = uint64(pointer), uint64(length)
		return err
	case component.KindTuple:
		return f.lowerFields(l, value, func(part *layout, field any) error {
			err := f.lowerFlat(part, field, flat)
			flat = flat[part.flat:]
			return err
		})
	case component.KindVariant:
		number, err := l.lowerCase(value, func(payload *layout, value any) error {
			return f.lowerFlat(payload, value, flat[1:])
		})
		flat[0] = uint64(number)
		return err
	}
	bits, err := f.lowerScalar(l, value)
	flat[0] = bits
	return err
}

// storeAt lowers a value to the guest's memory at pointer, which is aligned.
func (f *Frame) storeAt(l *layout, value any, pointer uint32) error {
	buffer, err := f.buffer(uint64(l.size))
	if err != nil {
		return err
	}
	if err := f.store(l, value, buffer); err != nil {
		return err
	}
	return f.write(pointer, buffer)
}

// buffer returns host memory in which a value is composed: the guest's own may move while parts of it are allocated.
func (f *Frame) buffer(size uint64) ([]byte, error) {
	if err := f.copying(int(size)); err != nil {
		return nil, err
	}
	return make([]byte, size), nil
}

func (f *Frame) write(pointer uint32, data []byte) error {
	view, err := f.view(pointer, uint64(len(data)), 1)
	copy(view, data)
	return err
}

// store lowers a value to the start of buffer, which is zero there.
func (f *Frame) store(l *layout, value any, buffer []byte) error {
	switch l.kind {
	case component.KindString, component.KindList:
		if l.kind == component.KindList && l.typ.Length != 0 {
			return f.storeElements(l, value, buffer)
		}
		pointer, length, err := f.lowerSequence(l, value)
		binary.LittleEndian.PutUint32(buffer, pointer)
		binary.LittleEndian.PutUint32(buffer[4:], length)
		return err
	case component.KindTuple:
		i := 0
		return f.lowerFields(l, value, func(part *layout, field any) error {
			i++
			return f.store(part, field, buffer[l.offsets[i-1]:])
		})
	case component.KindVariant:
		number, err := l.lowerCase(value, func(payload *layout, value any) error {
			return f.store(payload, value, buffer[l.offsets[1]:])
		})
		storeInteger(buffer, l.offsets[0], uint64(number))
		return err
	}
	bits, err := f.lowerScalar(l, value)
	storeInteger(buffer, l.size, bits)
	return err
}

func storeInteger(buffer []byte, size uint32, bits uint64) {
	switch size {
	case 1:
		buffer[0] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(buffer, uint16(bits))
	case 4:
		binary.LittleEndian.PutUint32(buffer, uint32(bits))
	default:
		binary.LittleEndian.PutUint64(buffer, bits)
	}
}

// lowerSequence lowers a string or a list of any length to memory that the guest allocates.
func (f *Frame) lowerSequence(l *layout, value any) (pointer, length uint32, err error) {
	switch value := value.(type) {
	case string:
		if l.kind == component.KindString {
			return f.lowerString(value)
		}
	case []byte:
		if l.kind == component.KindList && l.elem.kind == component.KindU8 {
			return lowerBytes(f, value)
		}
	case []any:
		if l.kind != component.KindList {
			break
		}
		size := uint64(len(value)) * uint64(l.elem.size)
		if pointer, err = f.allocate(l.elem.align, size); err != nil {
			return 0, 0, err
		}
		buffer, err := f.buffer(size)
		if err != nil {
			return 0, 0, err
		}
		if err := f.storeElements(l, value, buffer); err != nil {
			return 0, 0, err
		}
		return pointer, uint32(len(value)), f.write(pointer, buffer)
	}
	return 0, 0, l.mismatch(value)
}

// lowerBytes copies data to memory that the guest allocates.
func lowerBytes[T string | []byte](f *Frame, data T) (pointer, length uint32, err error) {
	if pointer, err = f.allocate(1, uint64(len(data))); err != nil {
		return 0, 0, err
	}
	f.charge(fuel.CopySteps(uint64(len(data))))
	view, err := f.view(pointer, uint64(len(data)), 1)
	copy(view, data)
	return pointer, uint32(len(data)), err
}

func (f *Frame) storeElements(l *layout, value any, buffer []byte) error {
	return f.lowerElements(l, value, func(i int, element any) error {
		return f.store(l.elem, element, buffer[i*int(l.elem.size):])
	})
}

// lowerElements calls lower for each element of a list.
func (f *Frame) lowerElements(l *layout, value any, lower func(i int, element any) error) error {
	if data, ok := value.([]byte); ok && l.elem.kind == component.KindU8 && len(data) == int(l.typ.Length) {
		for i, b := range data {
			if err := lower(i, uint64(b)); err != nil {
				return err
			}
		}
		return nil
	}
	values, ok := value.([]any)
	if !ok || l.elem.kind == component.KindU8 || l.typ.Length != 0 && len(values) != int(l.typ.Length) {
		return l.mismatch(value)
	}
	for i, element := range values {
		if i%chunk == 0 {
			f.charge(int64(min(len(values)-i, chunk)) * l.elem.values * fuel.ValueSteps)
		}
		if err := lower(i, element); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// lowerFields calls lower for each field of a record, in order.
func (f *Frame) lowerFields(l *layout, value any, lower func(part *layout, field any) error) error {
	fields, ok := value.([]any)
	if !ok || len(fields) != len(l.parts) {
		return l.mismatch(value)
	}
	for i, part := range l.parts {
		if err := lower(part, fields[i]); err != nil {
			return l.in(i, err)
		}
	}
	return nil
}

// lowerCase returns the number of a variant's case, and calls lower for its payload.
func (l *layout) lowerCase(value any, lower func(payload *layout, value any) error) (uint32, error) {
	c, ok := value.(component.Case)
	if !ok || uint64(c.Number) >= uint64(len(l.parts)) {
		return 0, l.mismatch(value)
	}
	payload := l.parts[c.Number]
	if payload == nil {
		return c.Number, nil
	}
	if err := lower(payload, c.Value); err != nil {
		return 0, l.in(int(c.Number), err)
	}
	return c.Number, nil
}

// mismatch is the error for a value that is not one of the type.
func (l *layout) mismatch(value any) error {
	switch value := value.(type) {
	case []any:
		return fmt.Errorf("a list of %d elements is not a %s", len(value), l.typ.Kind)
	case component.Case:
		return fmt.Errorf("case %d is not one of a %s", value.Number, l.typ.Kind)
	}
	return fmt.Errorf("a %T of the host is not a %s", value, l.typ.Kind)
}

func (f *Frame) lowerScalar(l *layout, value any) (uint64, error) {
	switch l.kind {
	case component.KindOwn, component.KindBorrow:
		return f.lowerHandle(l.typ, value)
	case component.KindStream, component.KindFuture, component.KindErrorContext:
		return 0, component.ErrAsync
	}
	bits, ok := scalarBits(l, value)
	if !ok {
		return 0, l.mismatch(value)
	}
	return bits, nil
}

// scalarBits returns the bits of a value, without those of its sign beyond the core value.
func scalarBits(l *layout, value any) (bits uint64, ok bool) {
	switch value := value.(type) {
	case bool:
		if value {
			bits = 1
		}
		return bits, l.kind == component.KindBool
	case uint64:
		unsigned := l.kind == component.KindU8 || l.kind == component.KindU16 || l.kind == component.KindU32 ||
			l.kind == component.KindU64
		return value, unsigned && value>>(8*l.size-1)>>1 == 0
	case int64:
		signed := l.kind == component.KindS8 || l.kind == component.KindS16 || l.kind == component.KindS32
		if l.kind == component.KindS64 {
			return uint64(value), true
		}
		half := int64(1) << (8*l.size - 1)
		return uint64(uint32(value)), signed && -half <= value && value < half
	case float32:
		return uint64(canonicalNaN32(math.Float32bits(value))), l.kind == component.KindF32
	case float64:
		return canonicalNaN64(math.Float64bits(value)), l.kind == component.KindF64
	case rune:
		return uint64(uint32(value)), l.kind == component.KindChar && utf8.ValidRune(value)
	case uint32:
		return uint64(value), l.kind == component.KindFlags && value&^allFlags(l.typ) == 0
	}
	return 0, false
}

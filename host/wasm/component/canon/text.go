package canon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// utf16Tag is set in the length of a string of latin1+utf16 that is UTF-16.
const utf16Tag = 1 << 31

// liftString lifts a string of length code units.
func (f *Frame) liftString(offset, length uint32) (any, error) {
	switch {
	case f.Encoding == component.UTF8:
		return f.liftUTF8(offset, length)
	case f.Encoding == component.UTF16:
		return f.liftUTF16(offset, length)
	case length&utf16Tag != 0:
		return f.liftUTF16(offset, length&^utf16Tag)
	}
	return f.liftLatin1(offset, length)
}

func (f *Frame) liftUTF8(offset, length uint32) (any, error) {
	view, err := f.view(offset, uint64(length), 1)
	if err != nil {
		return nil, fmt.Errorf("a string: %w", err)
	}
	if err := f.copyingLifted(len(view)); err != nil {
		return nil, err
	}
	if !utf8.Valid(view) {
		return nil, fmt.Errorf("a string of %d bytes at %#x is not valid UTF-8", length, offset)
	}
	return string(view), nil
}

func (f *Frame) liftUTF16(offset, length uint32) (any, error) {
	view, err := f.view(offset, 2*uint64(length), 2)
	if err != nil {
		return nil, fmt.Errorf("a string: %w", err)
	}
	f.charge(int64(len(view)) * fuel.TextSteps)
	size := 0
	for i := 0; i < len(view); {
		r, units := decodeUTF16(view[i:])
		if r == utf8.RuneError && units == 0 {
			return nil, fmt.Errorf("a string of %d code units at %#x has a lone surrogate", length, offset)
		}
		size += utf8.RuneLen(r)
		i += 2 * units
	}
	if err := f.reserveLifted(int64(size), int64(size)); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.Grow(size)
	for i := 0; i < len(view); {
		r, units := decodeUTF16(view[i:])
		text.WriteRune(r)
		i += 2 * units
	}
	return text.String(), nil
}

// decodeUTF16 returns the first character of view and its code units: 0 for a lone surrogate.
func decodeUTF16(view []byte) (r rune, units int) {
	if r = rune(binary.LittleEndian.Uint16(view)); !utf16.IsSurrogate(r) {
		return r, 1
	}
	if len(view) >= 4 {
		if r = utf16.DecodeRune(r, rune(binary.LittleEndian.Uint16(view[2:]))); r != utf8.RuneError {
			return r, 2
		}
	}
	return utf8.RuneError, 0
}

func (f *Frame) liftLatin1(offset, length uint32) (any, error) {
	view, err := f.view(offset, uint64(length), 2)
	if err != nil {
		return nil, fmt.Errorf("a string: %w", err)
	}
	f.charge(int64(len(view)) * fuel.TextSteps)
	size := len(view)
	for _, b := range view {
		size += int(b >> 7) // such a character has two bytes in UTF-8
	}
	if err := f.reserveLifted(int64(size), int64(size)); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.Grow(size)
	for _, b := range view {
		text.WriteRune(rune(b))
	}
	return text.String(), nil
}

// lowerString copies a string to memory that the guest allocates, and returns its length in code units.
func (f *Frame) lowerString(s string) (pointer, length uint32, err error) {
	if !utf8.ValidString(s) {
		return 0, 0, errors.New("a string of the host is not valid UTF-8")
	}
	if f.Encoding == component.UTF8 {
		return lowerBytes(f, s)
	}
	f.charge(int64(len(s)) * fuel.TextSteps)
	latin1, characters, units := f.Encoding == component.Latin1OrUTF16, 0, 0
	for _, r := range s {
		latin1 = latin1 && r <= 0xff
		characters++
		units += utf16.RuneLen(r)
	}
	if latin1 {
		return f.lowerUnits(s, characters, 1, 0)
	}
	tag := uint32(0)
	if f.Encoding == component.Latin1OrUTF16 {
		tag = utf16Tag
	}
	return f.lowerUnits(s, units, 2, tag)
}

// lowerUnits lowers a string as code units of width bytes.
func (f *Frame) lowerUnits(s string, units, width int, tag uint32) (pointer, length uint32, err error) {
	if pointer, err = f.allocate(2, uint64(units*width)); err != nil {
		return 0, 0, err
	}
	view, err := f.view(pointer, uint64(units*width), 2)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range s {
		switch high, low := utf16.EncodeRune(r); {
		case width == 1:
			view[0] = byte(r)
		case r > 0xffff:
			binary.LittleEndian.PutUint16(view, uint16(high))
			view = view[2:]
			binary.LittleEndian.PutUint16(view, uint16(low))
		default:
			binary.LittleEndian.PutUint16(view, uint16(r))
		}
		view = view[width:]
	}
	return pointer, uint32(units) | tag, nil
}

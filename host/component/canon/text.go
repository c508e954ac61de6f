package canon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/component"
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
	if err := f.copying(len(view)); err != nil {
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
	f.charge(int64(len(view)) * broker.TextSteps)
	// A code unit has at most 3 bytes of UTF-8; a growing builder copies them once more.
	if err := f.reserve(6 * int64(length)); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.Grow(int(length))
	for i := 0; i < len(view); i += 2 {
		r := rune(binary.LittleEndian.Uint16(view[i:]))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+2 < len(view) {
				low = rune(binary.LittleEndian.Uint16(view[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return nil, fmt.Errorf("a string of %d code units at %#x has a lone surrogate", length, offset)
			}
			i += 2
		}
		text.WriteRune(r)
	}
	return text.String(), nil
}

func (f *Frame) liftLatin1(offset, length uint32) (any, error) {
	view, err := f.view(offset, uint64(length), 2)
	if err != nil {
		return nil, fmt.Errorf("a string: %w", err)
	}
	f.charge(int64(len(view)) * broker.TextSteps)
	if err := f.reserve(4 * int64(length)); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.Grow(int(length))
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
	f.charge(int64(len(s)) * broker.TextSteps)
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

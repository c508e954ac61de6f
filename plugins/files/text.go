package main

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// encoding is a way to write text as bytes.
type encoding struct {
	name string
	// decode returns the text of src as UTF-8 and how many bytes of src that are: fewer than all if src ends within a
	// character.
	decode func(src []byte) (text []byte, n int, err error)
	// encode returns the text in this encoding, or the first character that it cannot hold; nil where there is no
	// writing.
	encode func(text string) (data []byte, missing rune)
}

var (
	utf8Text = &encoding{"utf-8", decodeUTF8, func(text string) ([]byte, rune) { return []byte(text), -1 }}
	utf16LE  = &encoding{"utf-16le", func(src []byte) ([]byte, int, error) { return decodeUTF16(src, 0, 1) }, nil}
	utf16BE  = &encoding{"utf-16be", func(src []byte) ([]byte, int, error) { return decodeUTF16(src, 1, 0) }, nil}
	shiftJIS = &encoding{"shift_jis", func(src []byte) ([]byte, int, error) { return decodeJIS(src, nextShiftJIS) },
		encodeShiftJIS}
	eucJP     = &encoding{"euc-jp", func(src []byte) ([]byte, int, error) { return decodeJIS(src, nextEUC) }, encodeEUC}
	latin1    = &encoding{"iso-8859-1", decodeLatin1, nil}
	encodings = []*encoding{utf8Text, shiftJIS, eucJP, utf16LE, utf16BE, latin1}
)

func encodeShiftJIS(text string) ([]byte, rune) { return appendShiftJIS(nil, text) }
func encodeEUC(text string) ([]byte, rune)      { return appendEUC(nil, text) }

// encodingNamed returns the encoding with a name, or nil.
func encodingNamed(name string) *encoding {
	for _, e := range encodings {
		if e.name == name {
			return e
		}
	}
	return nil
}

// errMalformed means that bytes are not text of an encoding.
var errMalformed = errors.New("malformed")

// decodeUTF8 returns src itself.
func decodeUTF8(src []byte) ([]byte, int, error) {
	n := len(src)
	for i := 1; i < utf8.UTFMax && i <= n; i++ { // a character may be cut off at the end
		if b := src[n-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(src[n-i:]) {
				n -= i
			}
			break
		}
	}
	if !utf8.Valid(src[:n]) {
		return nil, 0, errMalformed
	}
	return src[:n], n, nil
}

func decodeUTF16(src []byte, low, high int) ([]byte, int, error) {
	units := make([]uint16, len(src)/2)
	for i := range units {
		units[i] = uint16(src[2*i+low]) | uint16(src[2*i+high])<<8
	}
	if n := len(units); n > 0 && units[n-1] >= 0xd800 && units[n-1] < 0xdc00 { // the first half of a character
		units = units[:n-1]
	}
	text := make([]byte, 0, len(src))
	for _, r := range utf16.Decode(units) {
		text = utf8.AppendRune(text, r)
	}
	return text, 2 * len(units), nil
}

func decodeLatin1(src []byte) ([]byte, int, error) {
	text := make([]byte, 0, len(src)+len(src)/8)
	for _, b := range src {
		text = utf8.AppendRune(text, rune(b))
	}
	return text, len(src), nil
}

// decodeJIS decodes with next, which gives one character and its size.
func decodeJIS(src []byte, next func([]byte) (rune, int)) ([]byte, int, error) {
	text := make([]byte, 0, len(src)*3/2)
	n := 0
	for n < len(src) {
		r, size := next(src[n:])
		if size == 0 {
			break
		}
		if r < 0 {
			return nil, 0, errMalformed
		}
		text = utf8.AppendRune(text, r)
		n += size
	}
	return text, n, nil
}

// bom returns the encoding that a byte order mark at the beginning of a file states, or nil.
func bom(head []byte) *encoding {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return utf8Text
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return utf16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return utf16BE
	}
	return nil
}

// bomSize returns the length of the mark of an encoding, in bytes.
func bomSize(head []byte) int64 {
	switch bom(head) {
	case nil:
		return 0
	case utf8Text:
		return 3
	}
	return 2
}

// guess finds the encoding of text that has no mark, or nil. Shift_JIS and EUC-JP share most of their bytes: where both
// are possible, the one with fewer half-width katakana is meant.
func guess(sample []byte) *encoding {
	if _, _, err := decodeUTF8(sample); err == nil {
		return utf8Text
	}
	s, _, sErr := shiftJIS.decode(sample)
	e, _, eErr := eucJP.decode(sample)
	switch {
	case sErr != nil && eErr != nil:
		return nil
	case eErr != nil || sErr == nil && halfWidth(s) < halfWidth(e):
		return shiftJIS
	}
	return eucJP
}

func halfWidth(text []byte) (n int) {
	for _, r := range string(text) {
		if r >= 0xff61 && r <= 0xff9f {
			n++
		}
	}
	return n
}

// iso2022JP reports whether a text switches to Japanese with escape sequences.
func iso2022JP(sample []byte) bool {
	return bytes.Contains(sample, []byte("\x1b$B")) || bytes.Contains(sample, []byte("\x1b$@"))
}

// stringOf is the bytes as a string without a copy; they must not change any more.
func stringOf(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

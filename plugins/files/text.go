package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// encoding is a way to write text as bytes.
type encoding struct {
	name string
	// next decodes the first character of src, which is not empty, and returns its size in bytes: the size is 0 if src
	// ends within it, and the rune -1 if the bytes are no character.
	next func(src []byte) (rune, int)
	// encode returns the text in this encoding, or the first character that it cannot hold.
	encode func(text string) (data []byte, missing rune)
	// mark is the byte order mark. Of UTF-16 a new file has one.
	mark string
}

var (
	utf8Text = &encoding{"utf-8", nextUTF8, func(text string) ([]byte, rune) { return []byte(text), -1 }, "\xef\xbb\xbf"}
	utf16LE  = &encoding{"utf-16le", func(src []byte) (rune, int) { return nextUTF16(src, binary.LittleEndian) },
		func(text string) ([]byte, rune) { return encodeUTF16(text, binary.LittleEndian), -1 }, "\xff\xfe"}
	utf16BE = &encoding{"utf-16be", func(src []byte) (rune, int) { return nextUTF16(src, binary.BigEndian) },
		func(text string) ([]byte, rune) { return encodeUTF16(text, binary.BigEndian), -1 }, "\xfe\xff"}
	shiftJIS  = &encoding{"shift_jis", nextShiftJIS, encodeShiftJIS, ""}
	eucJP     = &encoding{"euc-jp", nextEUC, encodeEUC, ""}
	latin1    = &encoding{"iso-8859-1", func(src []byte) (rune, int) { return rune(src[0]), 1 }, encodeLatin1, ""}
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

// wide reports whether the bytes of a line end may be part of another character.
func (e *encoding) wide() bool { return e == utf16LE || e == utf16BE }

// decode returns the text of src as UTF-8, with U+FFFD for each of the bad sequences of bytes that are no character.
// It takes n bytes: fewer than all if src ends within a character.
func (e *encoding) decode(src []byte) (text []byte, n, bad int) {
	if e == utf8Text {
		if n = len(src) - cutUTF8(src); utf8.Valid(src[:n]) {
			return src[:n], n, 0
		}
		n = 0
	}
	text = make([]byte, 0, len(src)+len(src)/2)
	for n < len(src) {
		r, size := e.next(src[n:])
		switch {
		case size == 0:
			return text, n, bad
		case r < 0:
			bad++
			r = utf8.RuneError
		}
		text = utf8.AppendRune(text, r)
		n += size
	}
	return text, n, bad
}

// cutUTF8 returns the length of the character at the end of src that src cuts off.
func cutUTF8(src []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(src); i++ {
		if tail := src[len(src)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return i
			}
			break
		}
	}
	return 0
}

// nextUTF8 takes one byte where there is no character, so that the bytes that are shown as U+FFFD can be counted.
func nextUTF8(src []byte) (rune, int) {
	if !utf8.FullRune(src) {
		return 0, 0
	}
	r, size := utf8.DecodeRune(src)
	if r == utf8.RuneError && size == 1 {
		return -1, 1
	}
	return r, size
}

func nextUTF16(src []byte, order binary.ByteOrder) (rune, int) {
	if len(src) < 2 {
		return 0, 0
	}
	r := rune(order.Uint16(src))
	switch {
	case !utf16.IsSurrogate(r):
		return r, 2
	case r >= 0xdc00:
		return -1, 2
	case len(src) < 4:
		return 0, 0
	}
	if r = utf16.DecodeRune(r, rune(order.Uint16(src[2:]))); r == utf8.RuneError {
		return -1, 2
	}
	return r, 4
}

func encodeUTF16(text string, order binary.AppendByteOrder) []byte {
	data := make([]byte, 0, 2*len(text))
	for _, r := range text {
		if r > 0xffff {
			first, second := utf16.EncodeRune(r)
			data, r = order.AppendUint16(data, uint16(first)), second
		}
		data = order.AppendUint16(data, uint16(r))
	}
	return data
}

func encodeLatin1(text string) (data []byte, missing rune) {
	for _, r := range text {
		if r > 0xff {
			return nil, r
		}
		data = append(data, byte(r))
	}
	return data, -1
}

// bom returns the encoding that a byte order mark at the beginning of a file states, or nil.
func bom(head []byte) *encoding {
	for _, e := range []*encoding{utf8Text, utf16LE, utf16BE} {
		if bytes.HasPrefix(head, []byte(e.mark)) {
			return e
		}
	}
	return nil
}

// bomSize returns the length of the mark of an encoding, in bytes.
func bomSize(head []byte) int64 {
	if e := bom(head); e != nil {
		return int64(len(e.mark))
	}
	return 0
}

// guess finds the encoding of text that has no mark, or nil. A few lines do not outvote the others: UTF-8 with some
// that are none is UTF-8. Shift_JIS, EUC-JP and GBK share most of their bytes, so of the first two only text that is
// plausible counts, and of those that are, the one with fewer half-width katakana.
func guess(sample []byte) *encoding {
	if mostlyUTF8(sample) {
		return utf8Text
	}
	s, e := measure(shiftJIS, sample), measure(eucJP, sample)
	// Half-width katakana alone are lists of banks; among kanji that are hardly used they are Chinese.
	sjis := s.valid && (s.half <= s.full || !s.rare)
	// Japanese without kana cannot be told from Chinese in GB 2312, which has the same bytes for them.
	euc := e.valid && e.kana > 0 && e.kana >= e.full/20
	switch {
	case sjis && (!euc || s.half < e.half):
		return shiftJIS
	case euc:
		return eucJP
	}
	return nil
}

// mostlyUTF8 reports whether more lines are UTF-8 than not, of those that are not ASCII; or whether the bytes that are
// not are few.
func mostlyUTF8(sample []byte) bool {
	sample = sample[:len(sample)-cutUTF8(sample)]
	if utf8.Valid(sample) {
		return true
	}
	valid, broken, validBytes, brokenBytes := 0, 0, 0, 0
	for line := range bytes.Lines(sample) {
		wide, bad := 0, 0
		for i := 0; i < len(line); {
			r, size := utf8.DecodeRune(line[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				bad++
			case size > 2: // two bytes are often half-width katakana in Shift_JIS
				wide += size
			}
			i += size
		}
		switch {
		case bad > 0:
			broken++
		case wide > 0:
			valid++
		}
		validBytes, brokenBytes = validBytes+wide, brokenBytes+bad
	}
	return valid > broken || validBytes >= 4*brokenBytes
}

// measured counts the characters of a text in one of the Japanese encodings.
type measured struct {
	valid            bool
	full, half, kana int
	rare             bool // of the second half of the kanji
}

func measure(e *encoding, sample []byte) (m measured) {
	for len(sample) > 0 {
		r, size := e.next(sample)
		switch {
		case size == 0:
			m.valid = true
			return m
		case r < 0:
			return measured{}
		case r >= 0xff61 && r <= 0xff9f:
			m.half++
		case r >= 0x80:
			m.full++
			m.rare = m.rare || e == shiftJIS && sample[0] >= 0xe0
			if r >= 'ぁ' && r <= 'ヶ' {
				m.kana++
			}
		}
		sample = sample[size:]
	}
	m.valid = true
	return m
}

// iso2022JP reports whether a text switches to Japanese with escape sequences.
func iso2022JP(sample []byte) bool {
	return bytes.Contains(sample, []byte("\x1b$B")) || bytes.Contains(sample, []byte("\x1b$@"))
}

// stringOf is the bytes as a string without a copy; they must not change any more.
func stringOf(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf })
}

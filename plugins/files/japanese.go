package main

import (
	_ "embed"
	"sync"
	"unicode/utf8"
)

//go:generate go run jis0208_gen.go

// jis0208 is the index of the double-byte characters of Shift_JIS and EUC-JP: 94 a row, two bytes each with the low one
// first, zero for none. It is the WHATWG's (Encoding Standard, section 5), so Shift_JIS here is what Windows writes
// (code page 932).
//
//go:embed jis0208.bin
var jis0208 string

// jisRune is the character at a pointer of the index, or -1.
func jisRune(pointer int) rune {
	if pointer < 0 || 2*pointer+1 >= len(jis0208) {
		return -1
	}
	if r := rune(jis0208[2*pointer]) | rune(jis0208[2*pointer+1])<<8; r != 0 {
		return r
	}
	return -1
}

// halfKana are the half-width katakana, bytes 0xa1 to 0xdf.
const halfKana = 0xff61 - 0xa1

// nextShiftJIS decodes one character; the size is 0 if src ends within it and the rune -1 if there is none.
func nextShiftJIS(src []byte) (rune, int) {
	lead := int(src[0])
	switch {
	case lead < 0x80:
		return rune(lead), 1
	case lead >= 0xa1 && lead <= 0xdf:
		return halfKana + rune(lead), 1
	case lead == 0x80, lead == 0xa0, lead > 0xfc:
		return -1, 1
	case len(src) == 1:
		return 0, 0
	}
	trail := int(src[1])
	if trail < 0x40 || trail == 0x7f || trail > 0xfc {
		return -1, 1
	}
	if lead >= 0xe0 {
		lead -= 0x40
	}
	if trail > 0x7f {
		trail--
	}
	return jisRune((lead-0x81)*188 + trail - 0x40), 2
}

// nextEUC is nextShiftJIS for EUC-JP. The three-byte characters of JIS X 0212, which hardly any text has, are none.
func nextEUC(src []byte) (rune, int) {
	lead := src[0]
	switch {
	case lead < 0x80:
		return rune(lead), 1
	case lead != 0x8e && lead < 0xa1, lead == 0xff:
		return -1, 1
	case len(src) == 1:
		return 0, 0
	}
	trail := src[1]
	switch {
	case lead == 0x8e && trail >= 0xa1 && trail <= 0xdf:
		return halfKana + rune(trail), 2
	case lead == 0x8e, trail < 0xa1, trail == 0xff:
		return -1, 1
	}
	return jisRune((int(lead)-0xa1)*94 + int(trail) - 0xa1), 2
}

// lookalikes are characters that other systems write for one that is in the index.
var lookalikes = map[rune]rune{
	'\u2212': '\uff0d', '\u301c': '\uff5e', '\u2016': '\u2225', '\u2014': '\u2015', '\u00a2': '\uffe0',
	'\u00a3': '\uffe1', '\u00ac': '\uffe2',
	'\u00a5': '\\', '\u203e': '~',
}

// jisPointers are the places of each character in the index; some have two.
var jisPointers = sync.OnceValue(func() map[rune][]int {
	pointers := make(map[rune][]int, len(jis0208)/2)
	for pointer := range len(jis0208) / 2 {
		if r := jisRune(pointer); r > 0 {
			pointers[r] = append(pointers[r], pointer)
		}
	}
	return pointers
})

// appendJIS encodes text with double, which appends the character of a pointer or reports that it cannot. It returns
// the first character that has no place, or -1.
func appendJIS(dst []byte, text string, kana []byte, double func(dst []byte, pointer int) ([]byte, bool)) ([]byte,
	rune) {
	for _, r := range text {
		same, ok := lookalikes[r]
		if !ok {
			same = r
		}
		switch {
		case same < utf8.RuneSelf:
			dst = append(dst, byte(same))
			continue
		case same >= halfKana+0xa1 && same <= halfKana+0xdf:
			dst = append(append(dst, kana...), byte(same-halfKana))
			continue
		}
		done := false
		for _, pointer := range jisPointers()[same] {
			if dst, done = double(dst, pointer); done {
				break
			}
		}
		if !done {
			return nil, r
		}
	}
	return dst, -1
}

// appendShiftJIS encodes; of the characters that are there twice it takes the place that Windows takes.
func appendShiftJIS(dst []byte, text string) ([]byte, rune) {
	return appendJIS(dst, text, nil, func(dst []byte, pointer int) ([]byte, bool) {
		if pointer >= 8272 && pointer <= 8835 {
			return dst, false
		}
		lead, trail := pointer/188+0x81, pointer%188+0x40
		if lead >= 0xa0 {
			lead += 0x40
		}
		if trail >= 0x7f {
			trail++
		}
		return append(dst, byte(lead), byte(trail)), true
	})
}

// appendEUC encodes; the rows above 94 have no place in EUC-JP.
func appendEUC(dst []byte, text string) ([]byte, rune) {
	return appendJIS(dst, text, []byte{0x8e}, func(dst []byte, pointer int) ([]byte, bool) {
		if pointer >= 94*94 {
			return dst, false
		}
		return append(dst, byte(pointer/94+0xa1), byte(pointer%94+0xa1)), true
	})
}

// Package jsonstring quotes and unquotes JSON strings at about the speed of a copy. It checks sixteen bytes at a time
// and copies what needs no escape in one piece.
package jsonstring

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Plain returns the length of the longest prefix of text in which every byte stands for itself within a JSON string:
// none is a quote, a backslash or a control character.
func Plain(text []byte) int {
	i := 0
	for ; i < len(text)-15; i += 16 {
		words := text[i : i+16 : i+16]
		first, second := special(binary.LittleEndian.Uint64(words)), special(binary.LittleEndian.Uint64(words[8:]))
		if first != 0 {
			return i + bits.TrailingZeros64(first)/8
		}
		if second != 0 {
			return i + 8 + bits.TrailingZeros64(second)/8
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' {
		i++
	}
	return i
}

// special sets the top bit of the first byte of word that does not stand for itself, and no bit of those before it.
func special(word uint64) uint64 {
	const (
		ones = 0x0101010101010101
		tops = 0x80 * ones
	)
	// (x-ones)&^x has the top bit of a byte that is zero, and (x-n*ones)&^x of one that is less than n. A borrow sets
	// wrong bits only above a right one.
	quote, backslash := word^'"'*ones, word^'\\'*ones
	return ((word-' '*ones)&^word | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
}

// End returns the index of the quote that ends a string, whose content starts at data[from]. It is len(data) if there
// is none.
func End(data []byte, from int) int {
	for i := from; i < len(data); {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			break
		}
		i += n
		backslashes := 0
		for i-1-backslashes >= from && data[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i
		}
		i++
	}
	return len(data)
}

// QuotedLen returns the length of text as AppendQuote writes it. It counts text that is not UTF-8 as it is.
func QuotedLen(text string) int {
	n := len(text) + len(`""`)
	for rest := view(text); ; {
		plain := Plain(rest)
		if plain == len(rest) {
			return n
		}
		n += len(escapes[rest[plain]]) - 1
		rest = rest[plain+1:]
	}
}

// AppendQuote appends text as a JSON string. What is not UTF-8 is replaced by U+FFFD.
func AppendQuote(dst []byte, text string) []byte {
	if !utf8.ValidString(text) {
		dst, _ = jsontext.AppendQuote(dst, text) // the error says what has been replaced
		return dst
	}
	dst = append(dst, '"')
	for rest := view(text); ; {
		plain := Plain(rest)
		dst = append(dst, rest[:plain]...)
		if plain == len(rest) {
			return append(dst, '"')
		}
		dst = append(dst, escapes[rest[plain]]...)
		rest = rest[plain+1:]
	}
}

// escapes has the escape sequence of each byte that does not stand for itself.
var escapes = func() (table [256]string) {
	for c := range byte(' ') {
		table[c] = `\u00` + strconv.FormatUint(uint64(c)>>4, 16) + strconv.FormatUint(uint64(c)&15, 16)
	}
	for c, short := range named {
		table[c] = `\` + string(short)
	}
	return table
}()

// named are the characters whose escape sequence is a backslash and one character.
var named = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// Escape returns the length of the escape sequence that content starts with, or 0 if that is not valid. A high
// surrogate and the low one after it are one sequence. An unpaired surrogate is valid only if unpaired is set.
func Escape(content []byte, unpaired bool) int {
	if len(content) < 2 || content[1] != 'u' {
		if len(content) < 2 || characters[content[1]] == 0 {
			return 0
		}
		return 2
	}
	first, ok := codeUnit(content)
	if !ok {
		return 0
	}
	if !utf16.IsSurrogate(first) {
		return 6
	}
	if second, ok := codeUnit(content[6:]); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
		return 12
	}
	if unpaired {
		return 6
	}
	return 0
}

// Unquote returns the text of a valid JSON string. content is the part between its quotes. Without escape
// sequences it is the content itself.
func Unquote(content []byte) []byte {
	if bytes.IndexByte(content, '\\') < 0 {
		return content
	}
	return AppendUnquote(nil, content)
}

// UnquoteInPlace is Unquote, but overwrites content with the text.
func UnquoteInPlace(content []byte) []byte {
	first := bytes.IndexByte(content, '\\')
	if first < 0 {
		return content
	}
	return AppendUnquote(content[:first], content[first:]) // no escape sequence is shorter than its character
}

// AppendUnquote appends the text of a valid JSON string. content is the part between its quotes.
func AppendUnquote(dst, content []byte) []byte {
	dst = slices.Grow(dst, len(content))
	for next := bytes.IndexByte(content, '\\'); next >= 0; next = bytes.IndexByte(content, '\\') {
		dst = append(dst, content[:next]...)
		content = content[next:]
		if c := content[1]; c != 'u' {
			dst, content = append(dst, characters[c]), content[2:]
			continue
		}
		r, _ := codeUnit(content)
		content = content[6:]
		if utf16.IsSurrogate(r) {
			second, _ := codeUnit(content)
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				content = content[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return append(dst, content...)
}

// characters has the character of each escape sequence with one character.
var characters = func() (table [256]byte) {
	table['/'] = '/'
	for c, short := range named {
		table[short] = c
	}
	return table
}()

// codeUnit returns the UTF-16 code unit of the escape sequence that content starts with. It reports false if there is
// none.
func codeUnit(content []byte) (unit rune, ok bool) {
	if len(content) < 6 || content[0] != '\\' || content[1] != 'u' {
		return 0, false
	}
	for _, c := range content[2:6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}

// view returns the bytes of text, which must not be written to.
func view(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

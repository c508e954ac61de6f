package httpbroker

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// layer is a text with decoded escapes. text[i] starts at byte at[i] of the original; at has one more element for the
// end.
type layer struct {
	text []byte
	at   []int
}

func newLayer(original []byte) layer {
	at := make([]int, len(original)+1)
	for i := range at {
		at[i] = i
	}
	return layer{original, at}
}

// unescaped decodes the escapes that read recognizes, once. It reports false if there are none. An escape that may
// continue beyond the text ends the layer.
func (l layer) unescaped(read func(b []byte) (value []byte, n int, open bool)) (layer, bool) {
	undone := layer{make([]byte, 0, len(l.text)), make([]int, 0, len(l.at))}
	found := false
	i := 0
	for i < len(l.text) {
		value, n, open := read(l.text[i:])
		if open {
			found = true
			break
		}
		if n == 0 {
			value, n = l.text[i:i+1], 1
		} else {
			found = true
		}
		for range value {
			undone.at = append(undone.at, l.at[i])
		}
		undone.text = append(undone.text, value...)
		i += n
	}
	undone.at = append(undone.at, l.at[i])
	return undone, found
}

// escape parses an escape of URLs (%41), of JSON, JavaScript and Go (\u0041, \u{41}, \x41, \101, \/) or of HTML (&#65;,
// &#x41;, &sol;). n is 0 if there is none; open reports that it may continue beyond b.
func escape(b []byte) (value []byte, n int, open bool) {
	switch b[0] {
	case '%':
		return number(b, 1, 16, 2, false)
	case '\\':
		return backslash(b)
	case '&':
		return entity(b)
	}
	return nil, 0, false
}

// quotedPrintable parses an escape of mail (=41). In other texts "=" separates a name from its value, so these escapes
// are decoded separately.
func quotedPrintable(b []byte) (value []byte, n int, open bool) {
	if b[0] == '=' {
		return number(b, 1, 16, 2, false)
	}
	return nil, 0, false
}

// number parses a number with the given digits after the first begin bytes of an escape.
func number(b []byte, begin, base, digits int, isRune bool) (value []byte, n int, open bool) {
	end := min(len(b), begin+digits)
	v := uint64(0)
	for _, c := range b[begin:end] {
		digit, err := strconv.ParseUint(string(c), base, 8)
		if err != nil {
			return nil, 0, false
		}
		v = v*uint64(base) + digit
	}
	return character(v, isRune), end, end < begin+digits
}

func character(v uint64, isRune bool) []byte {
	if !isRune {
		return []byte{byte(v)}
	}
	return utf8.AppendRune(nil, rune(min(v, utf8.MaxRune+1))) // an invalid rune
}

// delimited parses a number of at most 8 digits up to the character last.
func delimited(b []byte, begin, base int, last byte) (value []byte, n int, open bool) {
	const most = 8
	end := bytes.IndexByte(b[:min(len(b), begin+most+1)], last)
	if end < 0 {
		_, err := strconv.ParseUint("0"+string(b[begin:min(len(b), begin+most)]), base, 64)
		return nil, 0, err == nil && len(b) <= begin+most
	}
	v, err := strconv.ParseUint(string(b[begin:end]), base, 64)
	if err != nil {
		return nil, 0, false
	}
	return character(v, true), end + 1, false
}

// shortEscapes maps letters after a backslash to their characters.
var shortEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"',
	'\'': '\'', '/': '/', '\\': '\\'}

func backslash(b []byte) (value []byte, n int, open bool) {
	if len(b) == 1 {
		return nil, 0, true
	}
	switch c := b[1]; c {
	case 'u':
		if len(b) > 2 && b[2] == '{' {
			return delimited(b, 3, 16, '}')
		}
		return number(b, 2, 16, 4, true)
	case 'U':
		return number(b, 2, 16, 8, true)
	case 'x':
		return number(b, 2, 16, 2, false)
	case '0', '1', '2', '3':
		return number(b, 1, 8, 3, false)
	default:
		if short, ok := shortEscapes[c]; ok {
			return []byte{short}, 2, false
		}
	}
	return nil, 0, false
}

// entities are the HTML entities of characters in secrets.
var entities = []struct {
	name  string
	value byte
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&sol;", '/'}, {"&plus;", '+'},
	{"&equals;", '='}, {"&lowbar;", '_'}}

func entity(b []byte) (value []byte, n int, open bool) {
	switch {
	case len(b) == 1:
		return nil, 0, true
	case b[1] != '#':
		for _, e := range entities {
			part := b[:min(len(b), len(e.name))]
			if e.name[:len(part)] == string(part) {
				return []byte{e.value}, len(part), len(part) < len(e.name)
			}
		}
		return nil, 0, false
	case len(b) == 2:
		return nil, 0, true
	case b[2]|0x20 == 'x':
		return delimited(b, 3, 16, ';')
	}
	return delimited(b, 2, 10, ';')
}

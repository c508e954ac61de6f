package wire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// An ArgumentDecoder decodes JSON into values of one struct type. The result is that of encoding/json, but long texts
// are not read three times, byte by byte: those of string fields are decoded here, and encoding/json gets the rest.
type ArgumentDecoder struct {
	// fields are the indexes of the string fields by the names of their members.
	fields map[string]int
}

// longText is the length of a string literal from which the decoder handles it, in bytes.
const longText = 512

// NewArgumentDecoder returns the decoder for a type. Types other than structs are left to encoding/json.
func NewArgumentDecoder(t reflect.Type) *ArgumentDecoder {
	d := &ArgumentDecoder{fields: map[string]int{}}
	if t.Kind() != reflect.Struct || decodesItself(t) {
		return d
	}
	seen := map[string]bool{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		if seen[name] {
			delete(d.fields, name) // encoding/json has rules for which of them is set
		} else if field.IsExported() && !field.Anonymous && name != "-" && options != "string" &&
			field.Type.Kind() == reflect.String && !decodesItself(field.Type) {
			d.fields[name] = i
		}
		seen[name] = true
	}
	return d
}

// decodesItself reports whether encoding/json calls a method of the type.
func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Decode decodes data into the struct to which into points. Strings of the result may point into data.
func (d *ArgumentDecoder) Decode(data []byte, into any) error {
	if rest, texts := d.cut(data); len(texts) > 0 && json.Unmarshal(rest, into) == nil {
		for _, text := range texts {
			reflect.ValueOf(into).Elem().Field(text.field).SetString(text.value)
		}
		return nil
	}
	return json.Unmarshal(data, into)
}

// longMember is a long text and the field that it belongs to.
type longMember struct {
	name  string
	field int
	value string
}

// cut decodes the long texts of the object data and returns them, and the object with empty strings in their place. It
// returns no texts if data is not an object, or if two members set the same field.
func (d *ArgumentDecoder) cut(data []byte) (rest []byte, texts []longMember) {
	if len(data) < longText || len(d.fields) == 0 {
		return nil, nil
	}
	var names []string
	copied := 0
	s := &scanner{data: data}
	for s.space(); len(names) == 0 && s.skip('{') || len(names) > 0 && s.skip(','); s.space() {
		s.space()
		name, ok := s.text()
		s.space()
		if !ok || !s.skip(':') {
			return nil, nil
		}
		s.space()
		names = append(names, name)
		start := s.pos
		if !s.value() {
			return nil, nil
		}
		field, ok := d.fields[name]
		if !ok || data[start] != '"' || s.pos-start < longText {
			continue
		}
		if value, ok := unquote(data[start+1 : s.pos-1]); ok {
			texts = append(texts, longMember{name, field, value})
			rest = append(rest, data[copied:start+1]...)
			copied = s.pos - 1
		}
	}
	for _, text := range texts {
		same := 0
		for _, name := range names {
			if strings.EqualFold(name, text.name) { // as encoding/json compares them
				same++
			}
		}
		if same > 1 {
			return nil, nil
		}
	}
	return append(rest, data[copied:]...), texts
}

// unquote decodes the text between the quotes of a string literal. It copies the text only if that has escapes. It
// returns false for an invalid one and for one that is not UTF-8.
func unquote(raw []byte) (string, bool) {
	plain := plainBytes(raw)
	text := raw
	if plain < len(raw) {
		text = make([]byte, 0, len(raw))
		for len(raw) > plain {
			text = append(text, raw[:plain]...)
			var size int
			if text, size = appendEscaped(text, raw[plain:]); size == 0 {
				return "", false
			}
			raw = raw[plain+size:]
			plain = plainBytes(raw)
		}
		text = append(text, raw...)
	}
	return unsafe.String(unsafe.SliceData(text), len(text)), utf8.Valid(text)
}

// escapes has what the bytes after a backslash stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendEscaped appends the rune of the escape sequence at the start of raw to text, and returns the length of the
// sequence, or 0 if it is invalid.
func appendEscaped(text, raw []byte) ([]byte, int) {
	if raw[0] != '\\' || len(raw) < 2 {
		return text, 0
	}
	if b := escapes[raw[1]]; b != 0 {
		return append(text, b), 2
	}
	first, ok := codeUnit(raw)
	if !ok {
		return text, 0
	}
	if utf16.IsSurrogate(first) {
		second, _ := codeUnit(raw[6:])
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return utf8.AppendRune(text, r), 12
		}
	}
	return utf8.AppendRune(text, first), 6 // a lone surrogate becomes U+FFFD
}

// codeUnit decodes the escape sequence \uXXXX at the start of raw.
func codeUnit(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, b := range raw[2:6] {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			b = (b | 0x20) - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	return r, true
}

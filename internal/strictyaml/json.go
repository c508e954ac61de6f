package strictyaml

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hako-run/hako/internal/lazyregexp"
)

var jsonNumber = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// JSON returns v as JSON, keys in the order of the document and numbers as they are written. It reports a number in a
// form that JSON does not have and then returns nil.
func (v Value) JSON() json.RawMessage {
	var b bytes.Buffer
	if !v.writeJSON(&b) {
		return nil
	}
	return b.Bytes()
}

func (v Value) writeJSON(b *bytes.Buffer) bool {
	switch v.node.Kind {
	case yaml.MappingNode:
		return v.writeObject(b)
	case yaml.SequenceNode:
		return v.writeArray(b)
	}
	switch v.node.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(v.node.Value))
	case "!!int", "!!float":
		if !jsonNumber().MatchString(v.node.Value) {
			v.Problem("%s is not a number in JSON: write it in plain decimal digits, or in quotes if it is a text",
				quote(v.node.Value))
			return false
		}
		b.WriteString(v.node.Value)
	default:
		writeString(b, v.node.Value)
	}
	return true
}

func (v Value) writeObject(b *bytes.Buffer) bool {
	ok, separator := true, "{"
	v.Map(func(key string, value Value) {
		b.WriteString(separator)
		separator = ","
		writeString(b, key)
		b.WriteByte(':')
		ok = value.writeJSON(b) && ok
	})
	if separator == "{" {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return ok
}

func (v Value) writeArray(b *bytes.Buffer) bool {
	ok := true
	b.WriteByte('[')
	v.List(func(i int, item Value) {
		if i > 0 {
			b.WriteByte(',')
		}
		ok = item.writeJSON(b) && ok
	})
	b.WriteByte(']')
	return ok
}

// writeString writes s without the escapes that json.Marshal makes for HTML.
func writeString(b *bytes.Buffer, s string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	// Encoding a string into a Buffer cannot fail; the encoder ends it with a newline.
	_ = encoder.Encode(s)
	b.Truncate(b.Len() - 1)
}

package mcpclient

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const structuredContent = "structuredContent"

// exact turns the structured content of a response into a string. The SDK would read its numbers as float64 and change
// large ones; it passes a string on unchanged, and unquoted decodes it. Other messages stay unchanged.
func exact(answer []byte) []byte {
	if !bytes.Contains(answer, []byte(structuredContent)) {
		return answer
	}
	begin, end := memberOf(answer, "result", structuredContent)
	if begin == end {
		return answer
	}
	quoted, err := jsontext.AppendQuote(nil, answer[begin:end])
	if err != nil {
		return answer
	}
	return slices.Concat(answer[:begin], quoted, answer[end:])
}

// unquoted returns the structured content as the server wrote it, or nil if there is none.
func unquoted(value any) (json.RawMessage, error) {
	text, ok := value.(string)
	switch {
	case value == nil, text == "null":
		return nil, nil
	case ok && json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	}
	return json.Marshal(value)
}

// memberOf finds the value at a path of names in a JSON object. If there is none, begin and end are equal.
func memberOf(data []byte, path ...string) (begin, end int) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
			return 0, 0
		}
		for {
			name, err := d.ReadToken()
			if err != nil || name.Kind() != '"' {
				return 0, 0
			}
			if name.String() == path[0] {
				break
			}
			if d.SkipValue() != nil {
				return 0, 0
			}
		}
		if path = path[1:]; len(path) == 0 {
			value, err := d.ReadValue()
			if err != nil {
				return 0, 0
			}
			end = int(d.InputOffset())
			return end - len(value), end
		}
	}
}

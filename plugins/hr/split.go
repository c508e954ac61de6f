package main

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Answers with the months of hundreds of people are some 10 MB of JSON. Package encoding/json would read each byte
// twice for each level of nesting. These functions take JSON that json.Valid has accepted, so they only look for ends.

// splitObject returns the members of a JSON object. Of members with the same name the last one counts. It returns nil
// for other values.
func splitObject(data []byte) map[string]json.RawMessage {
	i := skipSpace(data, 0)
	if i == len(data) || data[i] != '{' {
		return nil
	}
	members := map[string]json.RawMessage{}
	for i = skipSpace(data, i+1); data[i] != '}'; {
		end := valueEnd(data, i)
		name := unquote(data[i:end])
		i = skipSpace(data, skipSpace(data, end)+1) // after the colon
		end = valueEnd(data, i)
		members[name] = data[i:end:end]
		if i = skipSpace(data, end); data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return members
}

// splitArray returns the items of a JSON array, and nil for other values.
func splitArray(data []byte) []json.RawMessage {
	i := skipSpace(data, 0)
	if i == len(data) || data[i] != '[' {
		return nil
	}
	items := []json.RawMessage{}
	for i = skipSpace(data, i+1); data[i] != ']'; {
		end := valueEnd(data, i)
		items = append(items, data[i:end:end])
		if i = skipSpace(data, end); data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return items
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns the index after the value that begins at i.
func valueEnd(data []byte, i int) int {
	depth := 0
	for {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			if depth == 0 {
				return scalarEnd(data, i)
			}
			i++
		}
		if depth == 0 {
			return i
		}
	}
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(data []byte, i int) int {
	for {
		i += 1 + bytes.IndexByte(data[i+1:], '"')
		slashes := 0
		for data[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// scalarEnd returns the index after the number or name that begins at i.
func scalarEnd(data []byte, i int) int {
	for i < len(data) && bytes.IndexByte([]byte(",]} \n\t\r"), data[i]) < 0 {
		i++
	}
	return i
}

// unquote returns the text of a JSON string, as package encoding/json decodes it.
func unquote(quoted []byte) (text string) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &text) // a string
	return text
}

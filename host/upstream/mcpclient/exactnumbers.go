package mcpclient

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/jsonread"
)

const structuredContent = "structuredContent"

// exact keeps numbers of a response that the SDK would read as float64 and so change. The structured content becomes a
// string, which the SDK passes on unchanged and unquoted decodes. In the schemas of tools, which the SDK reads itself,
// each such number becomes a string that keptNumber decodes. Other messages stay unchanged.
func exact(answer []byte) []byte {
	answer = keepNumbers(answer)
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

// numberMark begins a string that stands for a number.
const numberMark = "hako.run/number:"

// mayChange reports whether a float64 may not keep a number: it keeps all decimals of 15 digits.
func mayChange(number []byte) bool { return len(number) > 15 || bytes.ContainsAny(number, "eE") }

// keepNumbers marks the numbers in the input and output schemas of a list of tools.
func keepNumbers(answer []byte) []byte {
	if !bytes.Contains(answer, []byte(`putSchema"`)) {
		return answer
	}
	var marked []byte
	done := 0
	r := jsonread.Reader{Data: answer, Lenient: true}
	var schema func(token jsonread.Token) bool
	schema = func(token jsonread.Token) bool {
		switch {
		case token.Kind == '{' || token.Kind == '[':
			for depth := 1; depth > 0; {
				next, err := r.Next()
				switch {
				case err != nil:
					return false
				case next.Kind == '{' || next.Kind == '[':
					depth++
				case next.Kind == '}' || next.Kind == ']':
					depth--
				default:
					schema(next)
				}
			}
		case token.Kind == '0' && mayChange(token.Raw):
			marked = append(append(append(marked, answer[done:r.Offset()]...), '"'), numberMark...)
			marked = append(append(marked, token.Raw...), '"')
			done = r.Offset() + len(token.Raw)
		}
		return true
	}
	tool := func(token jsonread.Token) bool {
		return inMember(&r, token, []string{"inputSchema", "outputSchema"}, schema)
	}
	list := func(token jsonread.Token) bool { return token.Kind == '[' && r.Elements(tool) }
	result := func(token jsonread.Token) bool { return inMember(&r, token, []string{"tools"}, list) }
	first, err := r.Next()
	if err != nil || !inMember(&r, first, []string{"result"}, result) || done == 0 {
		return answer // also what is no list of tools
	}
	return append(marked, answer[done:]...)
}

// inMember calls read with the first token of the members with these names of the object that begins with token, and
// skips the others. It reports false if the value is no object, and as read does.
func inMember(r *jsonread.Reader, token jsonread.Token, names []string, read func(jsonread.Token) bool) bool {
	return token.Kind == '{' && r.Members(func(name []byte) bool {
		value, err := r.Next()
		if err == nil && slices.Contains(names, string(name)) {
			return read(value)
		}
		if err == nil {
			_, err = r.Whole()
		}
		return err == nil
	})
}

// keptNumber returns the number that a string stands for.
func keptNumber(text string) (json.Number, bool) {
	number, ok := strings.CutPrefix(text, numberMark)
	token, err := (&jsonread.Reader{Data: []byte(number)}).Next()
	if !ok || err != nil || token.Kind != '0' || len(token.Raw) != len(number) {
		return "", false
	}
	return json.Number(number), true
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

// Package jsonread reads the tokens of a JSON document in place, at about the speed of memory.
//
// A Reader is for large documents of which little is kept: Reader.Members and Reader.Elements visit objects and arrays,
// Reader.Next returns the next Token. Package strictjson decodes into Go values and reports where a document is wrong.
// It accepts the same documents as a strict Reader, and those with unpaired surrogates.
package jsonread

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/jsonstring"
)

// Token is a token of a document: a bracket or a scalar value.
type Token struct {
	// Kind is the first byte of the token, '0' for all numbers.
	Kind byte
	// Name reports whether the token is the name of an object's member.
	Name bool
	// Raw is the token as it is in the document.
	Raw []byte
}

// Content returns what is between the quotes of a string.
func (t Token) Content() []byte { return t.Raw[1 : len(t.Raw)-1] }

// Text returns the text of a string. It is a part of the document unless the string has escape sequences.
func (t Token) Text() []byte { return jsonstring.Unquote(t.Content()) }

// Reader reads a document. Data is set by the caller and must not be changed while the tokens are in use.
type Reader struct {
	Data []byte
	// Lenient accepts what encoding/json accepts: repeated names, and strings that are not Unicode. A strict reader
	// refuses them (RFC 7493, sections 2.1 and 2.3).
	Lenient bool
	// MaxDepth is the deepest nesting. Zero means 10,000, that of encoding/json.
	MaxDepth int

	at, start int
	// open are the brackets around the next token.
	open []bracket
	// names are those of the members so far in all open objects, without escape sequences.
	names [][]byte
	// begun is true once the document's value has begun, named while a member has its name and not its value.
	begun, named bool
}

// bracket is an open object or array.
type bracket struct {
	isObject bool
	members  int
	// names is the index of its first name, set has its names once there are many.
	names int
	set   map[string]bool
}

// Errors of Next.
var (
	ErrDuplicate = errors.New("a name occurs twice")
	ErrDepth     = errors.New("it nests too deep")
)

// SyntaxError means that a document is not JSON at an offset.
type SyntaxError struct {
	Offset int
	// Reason is "missing value", for example.
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset+1, e.Reason) }

func (r *Reader) wrong(reason string) error {
	if r.at >= len(r.Data) {
		return io.ErrUnexpectedEOF
	}
	return &SyntaxError{r.at, reason}
}

// Next reads the next token. It returns io.EOF after the document's value, io.ErrUnexpectedEOF where the document ends
// early, ErrDuplicate, ErrDepth or a *SyntaxError.
func (r *Reader) Next() (Token, error) {
	if !r.begun {
		r.begun = true
		r.space()
		return r.value()
	}
	r.space()
	if len(r.open) == 0 {
		if r.at < len(r.Data) {
			return Token{}, r.wrong("unexpected data after the value")
		}
		return Token{}, io.EOF
	}
	inside := &r.open[len(r.open)-1]
	if r.named {
		r.named = false
		if err := r.separator(':'); err != nil {
			return Token{}, err
		}
		return r.value()
	}
	if r.at < len(r.Data) && r.Data[r.at] == inside.end() {
		r.names = r.names[:inside.names]
		r.open = r.open[:len(r.open)-1]
		return r.token(r.at + 1)
	}
	if inside.members > 0 {
		if err := r.separator(','); err != nil {
			return Token{}, err
		}
	}
	inside.members++
	if !inside.isObject {
		return r.value()
	}
	return r.name(inside)
}

// Whole returns the value that starts with the token read last, and reads to its end.
func (r *Reader) Whole() ([]byte, error) {
	start := r.start
	if c := r.Data[start]; c == '{' || c == '[' {
		for depth := len(r.open); len(r.open) >= depth; {
			if _, err := r.Next(); err != nil {
				return nil, err
			}
		}
	}
	return r.Data[start:r.at:r.at], nil
}

// Members reads the members of the object whose bracket was read last. It calls member after each name to read the
// value, and reports false once that does, after an error, and for a name with an escape sequence.
func (r *Reader) Members(member func(name []byte) bool) bool {
	for {
		token, err := r.Next()
		if err != nil || token.Kind == '}' {
			return err == nil
		}
		if bytes.IndexByte(token.Raw, '\\') >= 0 || !member(token.Content()) {
			return false
		}
	}
}

// Elements reads the elements of the array whose bracket was read last. It calls element after the first token of each
// to read the rest, and reports false once that does, and after an error.
func (r *Reader) Elements(element func(first Token) bool) bool {
	for {
		token, err := r.Next()
		if err != nil || token.Kind == ']' {
			return err == nil
		}
		if !element(token) {
			return false
		}
	}
}

// Offset returns the offset of the token read last.
func (r *Reader) Offset() int { return r.start }

func (b *bracket) end() byte {
	if b.isObject {
		return '}'
	}
	return ']'
}

func (r *Reader) space() {
	for ; r.at < len(r.Data); r.at++ {
		if c := r.Data[r.at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return
		}
	}
}

// separator reads a comma or colon and the space after it.
func (r *Reader) separator(c byte) error {
	if r.at == len(r.Data) || r.Data[r.at] != c {
		return r.wrong("missing " + string(c))
	}
	r.at++
	r.space()
	return nil
}

// token returns the token that ends at an offset.
func (r *Reader) token(end int) (Token, error) {
	r.start, r.at = r.at, end
	return Token{Kind: r.Data[r.start], Raw: r.Data[r.start:end:end]}, nil
}

func (r *Reader) value() (Token, error) {
	if r.at == len(r.Data) {
		return Token{}, io.ErrUnexpectedEOF
	}
	switch c := r.Data[r.at]; c {
	case '"':
		return r.text()
	case '{', '[':
		most := r.MaxDepth
		if most == 0 {
			most = 10_000
		}
		if len(r.open) == most {
			return Token{}, ErrDepth
		}
		r.open = append(r.open, bracket{isObject: c == '{', names: len(r.names)})
		return r.token(r.at + 1)
	case 't':
		return r.literal("true")
	case 'f':
		return r.literal("false")
	case 'n':
		return r.literal("null")
	}
	return r.number()
}

func (r *Reader) literal(word string) (Token, error) {
	for i := range len(word) {
		if r.at+i == len(r.Data) {
			return Token{}, io.ErrUnexpectedEOF
		}
		if r.Data[r.at+i] != word[i] {
			return Token{}, r.wrong("missing value")
		}
	}
	return r.token(r.at + len(word))
}

func (r *Reader) number() (Token, error) {
	end := r.at
	is := func(set string) bool {
		if end < len(r.Data) {
			for i := range len(set) {
				if r.Data[end] == set[i] {
					end++
					return true
				}
			}
		}
		return false
	}
	digits := func() bool {
		begin := end
		for end < len(r.Data) && '0' <= r.Data[end] && r.Data[end] <= '9' {
			end++
		}
		return end > begin
	}
	_ = is("-")
	valid := is("0") || digits()
	if valid && is(".") {
		valid = digits()
	}
	if valid && is("eE") {
		_ = is("+-")
		valid = digits()
	}
	if !valid {
		if end == len(r.Data) {
			return Token{}, io.ErrUnexpectedEOF
		}
		return Token{}, r.wrong("missing value")
	}
	token, err := r.token(end)
	token.Kind = '0'
	return token, err
}

// text reads a string.
func (r *Reader) text() (Token, error) {
	content := r.Data[r.at+1:]
	i := 0
	for {
		i += jsonstring.Plain(content[i:])
		if i == len(content) {
			return Token{}, io.ErrUnexpectedEOF
		}
		switch content[i] {
		case '"':
			if !r.Lenient && !utf8.Valid(content[:i]) {
				return Token{}, r.wrong("invalid UTF-8")
			}
			return r.token(r.at + i + len(`""`))
		case '\\':
			n := jsonstring.Escape(content[i:], r.Lenient)
			if n == 0 {
				return Token{}, r.wrong("invalid escape sequence")
			}
			i += n
		default:
			return Token{}, r.wrong("control character in a string")
		}
	}
}

// name reads the name of a member.
func (r *Reader) name(object *bracket) (Token, error) {
	if r.at == len(r.Data) || r.Data[r.at] != '"' {
		return Token{}, r.wrong("missing name")
	}
	token, err := r.text()
	if err != nil {
		return Token{}, err
	}
	r.named, token.Name = true, true
	if !r.Lenient && !r.add(object, token.Text()) {
		return token, ErrDuplicate
	}
	return token, nil
}

// few is the largest number of names that are compared one by one.
const few = 16

// add adds the name of a member. It reports false if the object has it already.
func (r *Reader) add(object *bracket, name []byte) bool {
	before := r.names[object.names:]
	r.names = append(r.names, name)
	if len(before) < few {
		for _, other := range before {
			if string(other) == string(name) {
				return false
			}
		}
		return true
	}
	if object.set == nil {
		object.set = map[string]bool{}
		for _, other := range before {
			object.set[string(other)] = true
		}
	}
	if object.set[string(name)] {
		return false
	}
	object.set[string(name)] = true
	return true
}

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unsafe"

	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Bounds of a JSON value that is checked against a schema.
const (
	maxDepth  = 64
	maxValues = 100_000
	// maxExponent bounds the exponent of a number, and maxNumber the length of its text: beyond the range of a
	// double, which is what RFC 8259 section 6 says to count on, and short enough to compute with exactly.
	maxExponent = 400
	maxNumber   = 128
)

// shape is the size of a decoded value.
type shape struct {
	// load[d] is what the values at depth d weigh: 1 each, and more for those that are long. bytes[d] is the length of
	// the texts among them, and of the names of properties.
	load, bytes [maxDepth]float64
	// values counts all values, forks those that may be a subschema: objects and booleans.
	values, forks int
	// fractions reports whether a number has a fraction or an exponent, nulls whether a value is null.
	fractions, nulls bool
}

// decodeJSON decodes data the way that encoding/json does with UseNumber, but strictly: what is not valid UTF-8,
// repeats a key, nests deeper than maxDepth, holds more than maxValues or a number without bounds is an error, a
// one-problem *Error. Texts of the value are parts of data.
func decodeJSON(data []byte) (any, *shape, error) {
	d := jsonDecoder{tokens: jsonread.Reader{Data: data}}
	return d.document()
}

func (d *jsonDecoder) document() (any, *shape, error) {
	value, err := d.next(0)
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, nil, err
	}
	return value, &d.shape, nil
}

// Decode decodes a JSON value as Validate does. The error is an *Error.
func Decode(data []byte) (any, error) {
	value, _, err := decodeJSON(data)
	return value, err
}

func jsonError(path, message string) error {
	return &Error{Problems: []Problem{{Path: path, Message: message}}}
}

type jsonDecoder struct {
	tokens jsonread.Reader
	shape  shape
	// texts holds the texts that have escape sequences in the document. The value refers to it.
	texts []byte
	// path are the keys and indexes that lead to the current value.
	path []step
}

// step is a key, or an index where that is not negative.
type step struct {
	key   string
	index int
}

// pathOf returns the text of a path.
func pathOf(steps []step) string {
	path := ""
	for _, s := range steps {
		if s.index >= 0 {
			path = strictyaml.Index(path, s.index)
		} else {
			path = strictyaml.Key(path, s.key)
		}
	}
	return path
}

func (d *jsonDecoder) fail(message string) error { return jsonError(pathOf(d.path), message) }

// syntax words an error of the reader.
func (d *jsonDecoder) syntax(err error) error {
	var syntax *jsonread.SyntaxError
	switch {
	case errors.Is(err, jsonread.ErrDuplicate):
		return d.fail("the key occurs twice")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return d.fail("is not valid JSON: it ends early")
	case errors.As(err, &syntax):
		return d.fail("is not valid JSON: " + syntax.Reason)
	}
	return d.fail("is not valid JSON")
}

func (d *jsonDecoder) end() error {
	if _, err := d.tokens.Next(); !errors.Is(err, io.EOF) {
		return jsonError("", "is not valid JSON: unexpected data after the value")
	}
	return nil
}

// next decodes the next value.
func (d *jsonDecoder) next(depth int) (any, error) {
	token, err := d.tokens.Next()
	if err != nil {
		return nil, d.syntax(err)
	}
	return d.value(token, depth)
}

// value decodes the value that begins with token.
func (d *jsonDecoder) value(token jsonread.Token, depth int) (any, error) {
	if d.shape.values++; d.shape.values > maxValues {
		return nil, jsonError("",
			"the JSON has more than 100,000 values, the most that are checked: send it in parts")
	}
	if depth == maxDepth {
		return nil, jsonError("", "the JSON nests deeper than "+strconv.Itoa(maxDepth)+" levels: make it flatter")
	}
	d.shape.load[depth]++
	switch token.Kind {
	case '{':
		d.shape.forks++
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		content := token.Content()
		if bytes.IndexByte(content, '\\') >= 0 {
			begin := len(d.texts)
			d.texts = jsonstring.AppendUnquote(d.texts, content)
			content = d.texts[begin:]
		}
		text := unsafe.String(unsafe.SliceData(content), len(content))
		d.measure(depth, text)
		return text, nil
	case '0':
		return d.number(string(token.Raw))
	case 'n':
		d.shape.nulls = true
		return nil, nil
	default:
		d.shape.forks++
		return token.Kind == 't', nil
	}
}

func (d *jsonDecoder) measure(depth int, text string) {
	d.shape.load[depth] += float64(len(text)) / 256
	d.shape.bytes[depth] += float64(len(text))
}

func (d *jsonDecoder) number(text string) (any, error) {
	if !bounded(text) {
		return nil, d.fail("is a number beyond the range of a double, or too long")
	}
	d.shape.fractions = d.shape.fractions || strings.ContainsAny(text, ".eE")
	return json.Number(text), nil
}

func (d *jsonDecoder) object(depth int) (any, error) {
	object := map[string]any{}
	d.path = append(d.path, step{index: -1})
	for {
		token, err := d.tokens.Next()
		if token.Name {
			d.path[len(d.path)-1].key = string(token.Text())
		}
		if err != nil {
			return nil, d.syntax(err)
		}
		if token.Kind == '}' {
			d.close(depth, len(object))
			return object, nil
		}
		key := d.path[len(d.path)-1].key
		if object[key], err = d.next(depth + 1); err != nil {
			return nil, err
		}
		d.measure(depth, key)   // for patternProperties
		d.measure(depth+1, key) // for propertyNames, which applies one level down
	}
}

func (d *jsonDecoder) array(depth int) (any, error) {
	array := []any{}
	d.path = append(d.path, step{})
	for {
		d.path[len(d.path)-1].index = len(array)
		token, err := d.tokens.Next()
		if err != nil {
			return nil, d.syntax(err)
		}
		if token.Kind == ']' {
			d.close(depth, len(array))
			return array, nil
		}
		item, err := d.value(token, depth+1)
		if err != nil {
			return nil, err
		}
		array = append(array, item)
	}
}

// close ends a container with n members.
func (d *jsonDecoder) close(depth, n int) {
	d.path = d.path[:len(d.path)-1]
	d.shape.load[depth] += float64(n) / 32
}

// bounded reports whether a number can be computed with exactly at a bounded cost.
func bounded(n string) bool {
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(n[i+1:])
		return err == nil && -maxExponent <= exponent && exponent <= maxExponent && i <= maxNumber
	}
	return len(n) <= maxNumber
}

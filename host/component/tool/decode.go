package tool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/strictyaml"
)

// decodeArguments returns the arguments of a function from a JSON object. No arguments are an empty object. The error
// says where a value does not fit, and what does.
func decodeArguments(f *component.Func, data []byte) ([]any, error) {
	if len(data) == 0 {
		data = []byte("{}")
	}
	d := decoder{r: jsonread.Reader{Data: data}}
	token, err := d.next()
	if err != nil {
		return nil, err
	}
	args, err := d.object(f.Params, token)
	if err != nil {
		return nil, err
	}
	if _, err := d.r.Next(); !errors.Is(err, io.EOF) {
		return nil, d.fail("unexpected data after the object")
	}
	return args, nil
}

// decoder decodes JSON into values of types.
type decoder struct {
	r jsonread.Reader
	// path leads to the current value: a name, or an index.
	path []any
}

// fail returns an error for the value at the path.
func (d *decoder) fail(format string, args ...any) error {
	path := ""
	for _, step := range d.path {
		switch step := step.(type) {
		case int:
			path = strictyaml.Index(path, step)
		case string:
			path = strictyaml.Key(path, step)
		}
	}
	if path != "" {
		path += ": "
	}
	return fmt.Errorf("%s%s", path, fmt.Sprintf(format, args...))
}

func (d *decoder) next() (jsonread.Token, error) {
	token, err := d.r.Next()
	switch {
	case errors.Is(err, jsonread.ErrDuplicate):
		return token, d.fail("the property %.100q occurs twice", token.Text())
	case err != nil:
		return token, d.fail("it is not valid JSON: %v", err)
	}
	return token, nil
}

// at calls decode with a step of the path.
func (d *decoder) at(step any, decode func() error) error {
	d.path = append(d.path, step)
	err := decode()
	d.path = d.path[:len(d.path)-1]
	return err
}

// value decodes the value that begins with token.
func (d *decoder) value(t *component.Type, token jsonread.Token) (any, error) {
	if bits, signed, ok := integerType(t.Kind); ok {
		return d.integer(bits, signed, token)
	}
	switch t.Kind {
	case component.KindBool:
		if token.Kind != 't' && token.Kind != 'f' {
			return nil, d.fail("must be true or false")
		}
		return token.Kind == 't', nil
	case component.KindF32, component.KindF64:
		return d.float(t.Kind, token)
	case component.KindChar, component.KindString, component.KindEnum:
		return d.text(t, token)
	case component.KindList:
		return d.list(t, token)
	case component.KindMap:
		return d.mapping(t, token)
	case component.KindTuple:
		return d.tuple(t, token)
	case component.KindRecord:
		return d.object(t.Fields, token)
	case component.KindFlags:
		return d.flags(t, token)
	case component.KindOption:
		return d.option(t, token)
	case component.KindVariant:
		return d.variant(t, token)
	case component.KindResult:
		return d.either(t, token)
	}
	return nil, d.fail("has a type without a JSON form")
}

// integer decodes an integer. Those of 64 bits may be texts, because not every JSON writer has them as numbers.
func (d *decoder) integer(bits int, signed bool, token jsonread.Token) (any, error) {
	digits := string(token.Raw)
	switch {
	case token.Kind == '"' && bits == 64:
		digits = string(token.Text())
	case token.Kind != '0':
		digits = ""
	default:
		digits = wholeNumber(digits)
	}
	if signed {
		if n, err := strconv.ParseInt(digits, 10, bits); err == nil {
			return n, nil
		}
		return nil, d.fail("must be an integer from %d to %d", int64(-1)<<(bits-1), uint64(1)<<(bits-1)-1)
	}
	if n, err := strconv.ParseUint(digits, 10, bits); err == nil {
		return n, nil
	}
	return nil, d.fail("must be an integer from 0 to %d", uint64(math.MaxUint64)>>(64-bits))
}

// wholeNumber returns the digits of a number such as 5.0 or 2e3, which JSON does not tell from 5 and 2000. It is empty
// for a number with a fraction, and for one with more digits than 64 bits hold.
func wholeNumber(number string) string {
	number, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign = "-"
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(number, "-"), ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return ""
		}
	}
	fraction = strings.TrimRight(fraction, "0")
	digits := strings.TrimLeft(whole+fraction, "0")
	zeros := shift - len(fraction) // that follow the digits
	for ; zeros < 0 && strings.HasSuffix(digits, "0"); zeros++ {
		digits = digits[:len(digits)-1]
	}
	switch {
	case digits == "":
		return "0"
	case zeros < 0, zeros > maxDigits, len(digits) > maxDigits:
		return ""
	}
	return sign + digits + strings.Repeat("0", zeros)
}

// maxDigits is more than any integer of 64 bits has.
const maxDigits = 20

func (d *decoder) float(kind component.Kind, token jsonread.Token) (any, error) {
	bits := 64
	if kind == component.KindF32 {
		bits = 32
	}
	if token.Kind != '0' {
		return nil, d.fail("must be a number")
	}
	f, err := strconv.ParseFloat(string(token.Raw), bits)
	switch {
	case err != nil:
		return nil, d.fail("must be a number that %d bits can hold", bits)
	case bits == 32:
		return float32(f), nil
	}
	return f, nil
}

func (d *decoder) text(t *component.Type, token jsonread.Token) (any, error) {
	if token.Kind != '"' {
		return nil, d.fail("must be a text")
	}
	text := string(token.Text())
	switch t.Kind {
	case component.KindString:
		return text, nil
	case component.KindChar:
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 || size != len(text) {
			return nil, d.fail("must be a text of one character")
		}
		return r, nil
	}
	number, err := d.label(t, text)
	return component.Case{Number: number}, err
}

// label returns the number of a case, label or flag.
func (d *decoder) label(t *component.Type, name string) (uint32, error) {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return uint32(i), nil
		}
	}
	return 0, d.fail("must be one of %s", strings.Join(fieldNames(t), ", "))
}

func (d *decoder) list(t *component.Type, token jsonread.Token) (any, error) {
	if t.Elem.Kind == component.KindU8 {
		return d.bytes(t, token)
	}
	values := []any{}
	err := d.elements(token, "a list", func(token jsonread.Token) error {
		value, err := d.value(t.Elem, token)
		values = append(values, value)
		return err
	})
	if err == nil {
		err = d.length(t, len(values))
	}
	return values, err
}

// bytes decodes base64, or a list of numbers.
func (d *decoder) bytes(t *component.Type, token jsonread.Token) (any, error) {
	if token.Kind == '"' {
		text := token.Text()
		data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, err := base64.StdEncoding.Decode(data, text)
		if err != nil {
			return nil, d.fail("must be base64, with padding and without line breaks")
		}
		return data[:n], d.length(t, n)
	}
	data := []byte{}
	err := d.elements(token, "base64, or a list of bytes", func(token jsonread.Token) error {
		n, err := d.integer(8, false, token)
		if err == nil {
			data = append(data, byte(n.(uint64)))
		}
		return err
	})
	if err == nil {
		err = d.length(t, len(data))
	}
	return data, err
}

// length checks the length of a list.
func (d *decoder) length(t *component.Type, n int) error {
	if t.Length > 0 && n != int(t.Length) {
		return d.fail("must have %d elements, and has %d", t.Length, n)
	}
	return nil
}

// elements calls element with the first token of each element of an array.
func (d *decoder) elements(token jsonread.Token, what string, element func(jsonread.Token) error) error {
	if token.Kind != '[' {
		return d.fail("must be %s", what)
	}
	for i := 0; ; i++ {
		token, err := d.next()
		if err != nil || token.Kind == ']' {
			return err
		}
		if err := d.at(i, func() error { return element(token) }); err != nil {
			return err
		}
	}
}

// members calls member with the name and the first token of each member of an object.
func (d *decoder) members(token jsonread.Token, what string,
	member func(name string, token jsonread.Token) error) error {
	if token.Kind != '{' {
		return d.fail("must be %s", what)
	}
	for {
		token, err := d.next()
		if err != nil || token.Kind == '}' {
			return err
		}
		name := string(token.Text())
		err = d.at(name, func() error {
			token, err := d.next()
			if err != nil {
				return err
			}
			return member(name, token)
		})
		if err != nil {
			return err
		}
	}
}

// mapping decodes a map: an object if its keys are texts, else a list of pairs.
func (d *decoder) mapping(t *component.Type, token jsonread.Token) (any, error) {
	entries := []any{}
	if hasTextKeys(t) {
		err := d.members(token, "an object", func(name string, token jsonread.Token) error {
			value, err := d.value(t.Err, token)
			entries = append(entries, []any{name, value})
			return err
		})
		return entries, err
	}
	pair := &component.Type{Kind: component.KindTuple, Fields: []component.Field{{Type: t.Elem}, {Type: t.Err}}}
	err := d.elements(token, "a list of pairs", func(token jsonread.Token) error {
		value, err := d.tuple(pair, token)
		entries = append(entries, value)
		return err
	})
	return entries, err
}

func (d *decoder) tuple(t *component.Type, token jsonread.Token) (any, error) {
	values := make([]any, 0, len(t.Fields))
	err := d.elements(token, fmt.Sprintf("a list of %d elements", len(t.Fields)), func(token jsonread.Token) error {
		if len(values) == len(t.Fields) {
			return d.fail("is one element too many: %d are expected", len(t.Fields))
		}
		value, err := d.value(t.Fields[len(values)].Type, token)
		values = append(values, value)
		return err
	})
	if err == nil && len(values) < len(t.Fields) {
		err = d.fail("must have %d elements, and has %d", len(t.Fields), len(values))
	}
	return values, err
}

// object decodes a record, or arguments. Options may be missing.
func (d *decoder) object(fields []component.Field, token jsonread.Token) ([]any, error) {
	values := make([]any, len(fields))
	err := d.members(token, "an object", func(name string, token jsonread.Token) error {
		for i, f := range fields {
			if f.Name == name {
				var err error
				values[i], err = d.value(f.Type, token)
				return err
			}
		}
		return d.fail("is unknown: remove it")
	})
	if err != nil {
		return nil, err
	}
	for i, f := range fields {
		switch {
		case values[i] != nil:
		case f.Type.Kind != component.KindOption:
			return nil, d.fail("%s is missing", f.Name)
		default:
			values[i] = component.None
		}
	}
	return values, nil
}

func (d *decoder) flags(t *component.Type, token jsonread.Token) (any, error) {
	var flags uint32
	err := d.elements(token, "a list of labels", func(token jsonread.Token) error {
		if token.Kind != '"' {
			return d.fail("must be a text")
		}
		number, err := d.label(t, string(token.Text()))
		flags |= 1 << number
		return err
	})
	return flags, err
}

func (d *decoder) option(t *component.Type, token jsonread.Token) (any, error) {
	if token.Kind == 'n' {
		return component.None, nil
	}
	if t.Elem.Kind != component.KindOption {
		value, err := d.value(t.Elem, token)
		return component.Some(value), err
	}
	inner, err := d.object([]component.Field{{Name: someKey, Type: t.Elem}}, token)
	if err != nil {
		return nil, err
	}
	return component.Some(inner[0]), nil
}

func (d *decoder) variant(t *component.Type, token jsonread.Token) (any, error) {
	var tag string
	var payload []byte
	err := d.members(token, "an object with tag and val", func(name string, token jsonread.Token) (err error) {
		switch {
		case name == valKey:
			payload, err = d.r.Whole() // decoded when the tag is known
			return err
		case name == tagKey && token.Kind == '"':
			tag = string(token.Text())
			return nil
		case name == tagKey:
			return d.fail("must be a text")
		}
		return d.fail("is unknown: remove it")
	})
	if err != nil {
		return nil, err
	}
	var number uint32
	err = d.at(tagKey, func() error {
		number, err = d.label(t, tag)
		return err
	})
	if err != nil {
		return nil, err
	}
	value, err := d.payload(t.Fields[number].Type, valKey, payload)
	return component.Case{Number: number, Value: value}, err
}

// payload decodes the payload of a case. t is nil for a case without one.
func (d *decoder) payload(t *component.Type, key string, data []byte) (value any, err error) {
	if t == nil {
		if data != nil && string(data) != "null" {
			return nil, d.fail("the case has no value: remove %s", key)
		}
		return nil, nil
	}
	if data == nil && t.Kind != component.KindOption {
		return nil, d.fail("%s is missing", key)
	}
	if data == nil {
		return component.None, nil
	}
	err = d.at(key, func() error {
		inner := decoder{r: jsonread.Reader{Data: data}, path: d.path}
		token, err := inner.next()
		if err == nil {
			value, err = inner.value(t, token)
		}
		return err
	})
	return value, err
}

// either decodes a result: an object with ok or err.
func (d *decoder) either(t *component.Type, token jsonread.Token) (any, error) {
	payloads := map[string][]byte{}
	err := d.members(token, "an object with ok or err", func(name string, _ jsonread.Token) (err error) {
		payloads[name], err = d.r.Whole()
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, c := range []component.Field{{Name: okKey, Type: t.Elem}, {Name: errKey, Type: t.Err}} {
		data, ok := payloads[c.Name]
		if !ok || len(payloads) != 1 {
			continue
		}
		value, err := d.payload(c.Type, c.Name, data)
		return component.Case{Number: uint32(i), Value: value}, err
	}
	return nil, d.fail("must have either ok or err")
}

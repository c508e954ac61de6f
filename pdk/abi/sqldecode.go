package abi

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeSQLStatement decodes the output of SQLStatement.Encode. Unknown and repeated keys, values of other types and
// remaining bytes are errors.
func DecodeSQLStatement(head, blobs []byte) (*SQLStatement, error) {
	s := new(SQLStatement)
	d := sqlDecoder{data: head, blobs: blobs}
	seen := map[string]bool{}
	err := d.document(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "sql":
			s.SQL, err = d.text()
		case "args":
			s.Args, err = d.values(nil)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		return err
	})
	if err == nil && len(d.blobs) > 0 {
		err = fmt.Errorf("%d bytes of blobs belong to no parameter", len(d.blobs))
	}
	return s, err
}

// DecodeSQLResult decodes the output of SQLResult.Encode. It ignores unknown keys. Blobs are parts of the slice blobs.
func DecodeSQLResult(head, blobs []byte) (*SQLResult, error) {
	r := new(SQLResult)
	d := sqlDecoder{data: head, blobs: blobs}
	err := d.document(func(key string) (err error) {
		switch key {
		case "columns":
			r.Columns = []string{}
			return d.list(func() error {
				name, err := d.text()
				r.Columns = append(r.Columns, name)
				return err
			})
		case "rows":
			return d.list(func() error {
				row, err := d.values(make([]any, 0, len(r.Columns)))
				r.Rows = append(r.Rows, row)
				return err
			})
		case "changes":
			r.Changes, err = d.integer()
		case "lastInsertId":
			r.LastInsertID, err = d.integer()
		case "error":
			r.Error = new(Error)
			return d.object(func(key string) (err error) {
				switch key {
				case "code":
					r.Error.Code, err = d.text()
				case "message":
					r.Error.Message, err = d.text()
				default:
					err = d.skipValue()
				}
				return err
			})
		default:
			err = d.skipValue()
		}
		return err
	})
	return r, err
}

// sqlDecoder decodes statements and results without reflection, which in Wasm would cost more than the statement.
type sqlDecoder struct {
	data  []byte
	pos   int
	blobs []byte // remaining blobs
}

var errSyntax = errors.New("this is not JSON")

// document decodes the only object in data.
func (d *sqlDecoder) document(member func(key string) error) error {
	err := errSyntax
	if utf8.Valid(d.data) {
		err = d.object(member)
	}
	if d.space(); err == nil && d.pos != len(d.data) {
		err = errors.New("unexpected data after the object")
	}
	if err != nil {
		return fmt.Errorf("at byte %d: %w", d.pos, err)
	}
	return nil
}

func (d *sqlDecoder) object(member func(key string) error) error {
	return d.sequence('{', '}', func() error {
		key, err := d.text()
		if err != nil {
			return err
		}
		if !d.skipAfterSpace(':') {
			return errSyntax
		}
		return member(key)
	})
}

func (d *sqlDecoder) list(element func() error) error { return d.sequence('[', ']', element) }

// sequence decodes elements between two brackets.
func (d *sqlDecoder) sequence(opening, closing byte, element func() error) error {
	if !d.skipAfterSpace(opening) {
		return errSyntax
	}
	if d.skipAfterSpace(closing) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if d.skipAfterSpace(closing) {
			return nil
		}
		if !d.skipAfterSpace(',') {
			return errSyntax
		}
	}
}

func (d *sqlDecoder) values(list []any) ([]any, error) {
	err := d.list(func() error {
		value, err := d.value()
		list = append(list, value)
		return err
	})
	return list, err
}

// value decodes an SQL value.
func (d *sqlDecoder) value() (any, error) {
	switch d.peek() {
	case '"':
		return d.text()
	case '{':
		return d.blob()
	case 'n':
		return nil, d.literal("null")
	case 't', 'f':
		return nil, errors.New("SQL knows no booleans: send 1 or 0")
	}
	return d.number()
}

func (d *sqlDecoder) blob() (blob []byte, err error) {
	length := int64(-1)
	err = d.object(func(key string) (err error) {
		if key != "blob" || length >= 0 {
			return fmt.Errorf("a blob has the one key \"blob\", not %q", key)
		}
		length, err = d.integer()
		return err
	})
	if err != nil {
		return nil, err
	}
	if length < 0 || length > int64(len(d.blobs)) {
		return nil, fmt.Errorf("a blob of %d bytes, where %d are left", length, len(d.blobs))
	}
	if length == 0 {
		return []byte{}, nil
	}
	blob, d.blobs = d.blobs[:length:length], d.blobs[length:]
	return blob, nil
}

func (d *sqlDecoder) integer() (int64, error) {
	value, err := d.number()
	if err != nil {
		return 0, err
	}
	n, ok := value.(int64)
	if !ok {
		return 0, fmt.Errorf("%v is not an integer", value)
	}
	return n, nil
}

// number decodes an int64, or a float64 if there is a fraction or an exponent.
func (d *sqlDecoder) number() (any, error) {
	d.space()
	start := d.pos
	d.skip('-')
	digits := d.digits()
	if digits == 0 || digits > 1 && d.data[d.pos-digits] == '0' {
		return nil, errSyntax
	}
	whole := d.pos
	if d.skip('.') && d.digits() == 0 {
		return nil, errSyntax
	}
	if d.skip('e') || d.skip('E') {
		if !d.skip('+') {
			d.skip('-')
		}
		if d.digits() == 0 {
			return nil, errSyntax
		}
	}
	text := string(d.data[start:d.pos])
	if d.pos > whole {
		f, _ := strconv.ParseFloat(text, 64) // out of range means infinite
		return f, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s does not fit 64 bits", text)
	}
	return n, nil
}

func (d *sqlDecoder) digits() int {
	start := d.pos
	for d.pos < len(d.data) && d.data[d.pos] >= '0' && d.data[d.pos] <= '9' {
		d.pos++
	}
	return d.pos - start
}

// text decodes a string.
func (d *sqlDecoder) text() (string, error) {
	if !d.skipAfterSpace('"') {
		return "", errSyntax
	}
	start := d.pos
	var unescaped []byte // nil if there are no escapes
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; {
		case b == '"':
			tail := d.data[start:d.pos]
			d.pos++
			return string(append(unescaped, tail...)), nil
		case b == '\\':
			unescaped = append(unescaped, d.data[start:d.pos]...)
			d.pos++
			r, ok := d.escape()
			if !ok {
				return "", errSyntax
			}
			unescaped = utf8.AppendRune(unescaped, r)
			start = d.pos
		case b < ' ':
			return "", errSyntax
		default:
			d.pos++
		}
	}
	return "", errSyntax
}

// escape decodes an escape sequence after its backslash. An unpaired surrogate becomes U+FFFD.
func (d *sqlDecoder) escape() (rune, bool) {
	if d.pos == len(d.data) {
		return 0, false
	}
	b := d.data[d.pos]
	d.pos++
	if b != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), b)
		return rune("\"\\/\b\f\n\r\t"[max(i, 0)]), i >= 0
	}
	r, ok := d.hex()
	if !utf16.IsSurrogate(r) {
		return r, ok
	}
	before := d.pos
	if d.skip('\\') && d.skip('u') {
		if low, ok := d.hex(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, true
			}
		}
	}
	d.pos = before
	return utf8.RuneError, ok
}

func (d *sqlDecoder) hex() (rune, bool) {
	if len(d.data)-d.pos < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(d.data[d.pos:d.pos+4]), 16, 16)
	d.pos += 4
	return rune(n), err == nil
}

// skipValue skips a value of any type.
func (d *sqlDecoder) skipValue() error {
	switch d.peek() {
	case '{':
		return d.object(func(string) error { return d.skipValue() })
	case '[':
		return d.list(d.skipValue)
	case '"':
		_, err := d.text()
		return err
	case 't':
		return d.literal("true")
	case 'f':
		return d.literal("false")
	case 'n':
		return d.literal("null")
	}
	_, err := d.number()
	return err
}

func (d *sqlDecoder) literal(word string) error {
	if !bytes.HasPrefix(d.data[d.pos:], []byte(word)) {
		return errSyntax
	}
	d.pos += len(word)
	return nil
}

func (d *sqlDecoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, or 0 at the end.
func (d *sqlDecoder) peek() byte {
	if d.space(); d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

// skipAfterSpace skips white space, and b if it follows.
func (d *sqlDecoder) skipAfterSpace(b byte) bool {
	d.space()
	return d.skip(b)
}

// skip skips b if it is next.
func (d *sqlDecoder) skip(b byte) bool {
	if d.pos < len(d.data) && d.data[d.pos] == b {
		d.pos++
		return true
	}
	return false
}

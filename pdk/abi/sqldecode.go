package abi

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeSQLStatement reads what SQLStatement.Encode writes. It is strict: unknown and repeated keys, values of other types and
// leftover bytes are errors.
func DecodeSQLStatement(head, blobs []byte) (*SQLStatement, error) {
	s := new(SQLStatement)
	d := sqlDecoder{data: head, blobs: blobs}
	seen := map[string]bool{}
	err := d.document(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%q is there twice", key)
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

// DecodeSQLResult reads what SQLResult.Encode writes. Unknown keys are passed over. Blobs are parts of the slice given.
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
					err = d.skip()
				}
				return err
			})
		default:
			err = d.skip()
		}
		return err
	})
	return r, err
}

// sqlDecoder reads the JSON of statements and results by hand: in Wasm, reflection would cost more than the statement.
type sqlDecoder struct {
	data  []byte
	pos   int
	blobs []byte // what the blobs to come are cut from
}

var errSyntax = errors.New("this is not JSON")

// document reads the one object that data holds.
func (d *sqlDecoder) document(member func(key string) error) error {
	err := errSyntax
	if utf8.Valid(d.data) {
		err = d.object(member)
	}
	if d.space(); err == nil && d.pos != len(d.data) {
		err = errors.New("something follows the object")
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
		if !d.next(':') {
			return errSyntax
		}
		return member(key)
	})
}

func (d *sqlDecoder) list(element func() error) error { return d.sequence('[', ']', element) }

// sequence reads elements between two brackets.
func (d *sqlDecoder) sequence(opening, closing byte, element func() error) error {
	if !d.next(opening) {
		return errSyntax
	}
	if d.next(closing) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if d.next(closing) {
			return nil
		}
		if !d.next(',') {
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

// value reads what crosses as a value of SQL.
func (d *sqlDecoder) value() (any, error) {
	switch d.peek() {
	case '"':
		return d.text()
	case '{':
		return d.blob()
	case 'n':
		return nil, d.word("null")
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
		return 0, fmt.Errorf("%v is no integer", value)
	}
	return n, nil
}

// number reads an int64, or a float64 if there is a fraction or an exponent.
func (d *sqlDecoder) number() (any, error) {
	d.space()
	start := d.pos
	d.take('-')
	digits := d.digits()
	if digits == 0 || digits > 1 && d.data[d.pos-digits] == '0' {
		return nil, errSyntax
	}
	whole := d.pos
	if d.take('.') && d.digits() == 0 {
		return nil, errSyntax
	}
	if d.take('e') || d.take('E') {
		if !d.take('+') {
			d.take('-')
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

// text reads a string.
func (d *sqlDecoder) text() (string, error) {
	if !d.next('"') {
		return "", errSyntax
	}
	start := d.pos
	var unescaped []byte // nil while there was no escape
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

// escape reads what follows a backslash. Half of a surrogate pair is read as U+FFFD.
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
	if d.take('\\') && d.take('u') {
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

// skip passes over a value of any type.
func (d *sqlDecoder) skip() error {
	switch d.peek() {
	case '{':
		return d.object(func(string) error { return d.skip() })
	case '[':
		return d.list(d.skip)
	case '"':
		_, err := d.text()
		return err
	case 't':
		return d.word("true")
	case 'f':
		return d.word("false")
	case 'n':
		return d.word("null")
	}
	_, err := d.number()
	return err
}

func (d *sqlDecoder) word(word string) error {
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

// peek returns the byte after white space, or 0 at the end.
func (d *sqlDecoder) peek() byte {
	if d.space(); d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

// next passes over white space and b, if b is there.
func (d *sqlDecoder) next(b byte) bool {
	d.space()
	return d.take(b)
}

// take passes over b, if it is there.
func (d *sqlDecoder) take(b byte) bool {
	if d.pos < len(d.data) && d.data[d.pos] == b {
		d.pos++
		return true
	}
	return false
}

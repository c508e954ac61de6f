// Package strictjson decodes untrusted JSON so that two readers of a document cannot interpret it differently:
// duplicate keys are errors, and keys match struct fields exactly. Otherwise it behaves like encoding/json. Unmarshal
// decodes a value, UnmarshalKnown also refuses unknown keys, and Check only validates.
//
// Errors are for the author of the document: they name the position as a JSON Pointer and contain no Go types.
package strictjson

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/hako-run/hako/internal/clip"
)

var (
	grammar  = json.JoinOptions(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(true))
	standard = json.JoinOptions(jsonv1.DefaultOptionsV1(), grammar,
		jsonv1.ReportErrorsWithLegacySemantics(false), json.MatchCaseInsensitiveNames(false))
	known = json.JoinOptions(standard, json.RejectUnknownMembers(true))
)

// Check returns an error if data is not exactly one JSON value or contains an object with a duplicate key.
func Check(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), grammar)
	if err := d.SkipValue(); err != nil {
		return worded(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the value")
	}
	return nil
}

// Unmarshal decodes data into v.
func Unmarshal(data []byte, v any) error { return worded(json.Unmarshal(data, v, standard)) }

// UnmarshalKnown decodes data into v. A key without a field in v is an error.
func UnmarshalKnown(data []byte, v any) error { return worded(json.Unmarshal(data, v, known)) }

// UnmarshalExcept decodes an object into v, except for one member, which it returns unchanged and unchecked, or nil if
// it is missing. So the caller can report errors in that member with the decoded rest, such as the ID of a request.
func UnmarshalExcept(data []byte, member string, v any) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), grammar, jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != jsontext.KindBeginObject {
		return nil, Unmarshal(data, v)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, worded(err)
	}
	var apart jsontext.Value
	rest := []byte{'{'}
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadValue()
		if err != nil {
			return nil, worded(err)
		}
		name = name.Clone()
		value, err := d.ReadValue()
		if err != nil {
			return nil, worded(err)
		}
		text, err := jsontext.AppendUnquote(nil, name)
		if err == nil && string(text) == member {
			if apart != nil {
				return nil, fmt.Errorf("the value has the duplicate key %s", quoted(member))
			}
			apart = value.Clone()
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(rest, name...), ':'), value...)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, worded(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the value")
	}
	return apart, Unmarshal(append(rest, '}'), v)
}

// worded rewrites an error for the author of the document.
func worded(err error) error {
	if err == nil {
		return nil
	}
	return reworded(err)
}

// reworded is separate from worded, so that its variables are not allocated for a nil error.
func reworded(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		at := syntax.JSONPointer
		return fmt.Errorf("%s has the duplicate key %s", place(at.Parent()), quoted(at.LastToken()))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends early")
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: %w", syntax.ByteOffset, syntax.Err)
	case errors.As(err, &semantic):
		return semanticError(semantic)
	}
	return err
}

func semanticError(err *json.SemanticError) error {
	at := place(err.JSONPointer)
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		return fmt.Errorf("%s has the unknown key %s", place(err.JSONPointer.Parent()),
			quoted(err.JSONPointer.LastToken()))
	case errors.Is(err.Err, strconv.ErrRange):
		return fmt.Errorf("%s is a number out of range", at)
	case err.GoType == nil:
		return fmt.Errorf("%s has an unexpected type", at)
	}
	var broken base64.CorruptInputError
	if errors.As(err.Err, &broken) {
		return fmt.Errorf("%s is not Base64", at)
	}
	if is, want := kinds[err.JSONKind], kindOf(err.GoType); is != "" && is != want {
		return fmt.Errorf("%s is %s and must be %s", at, is, want)
	}
	if err.Err != nil {
		return fmt.Errorf("%s: %w", at, err.Err)
	}
	return fmt.Errorf("%s must be %s", at, kindOf(err.GoType))
}

var kinds = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "true", jsontext.KindFalse: "false", jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// kindOf returns the kind of JSON value that decodes into a Go type.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			return "an array"
		}
	}
	return "a string"
}

// place describes the position of a value. It shortens the pointer, whose length is untrusted.
func place(at jsontext.Pointer) string {
	if at == "" {
		return "the value"
	}
	return "the value at " + quoted(string(at))
}

func quoted(text string) string { return strconv.Quote(clip.Marked(text, 100)) }

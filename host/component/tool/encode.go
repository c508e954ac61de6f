package tool

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// errTooLarge means that a value has more JSON than the encoder's limit.
var errTooLarge = errors.New("the JSON is too large")

// encoder encodes values of types as JSON.
type encoder struct {
	out []byte
	// limit bounds the length of the output approximately: it is checked before each value.
	limit int
}

func (e *encoder) raw(text string) { e.out = append(e.out, text...) }

func (e *encoder) text(text string) { e.out = abi.AppendString(e.out, text) }

// value appends a value.
func (e *encoder) value(t *component.Type, value any) error {
	if len(e.out) > e.limit {
		return errTooLarge
	}
	switch value := value.(type) {
	case bool:
		e.out = strconv.AppendBool(e.out, value)
	case uint64:
		e.integer(strconv.FormatUint(value, 10), value <= maxExact)
	case int64:
		e.integer(strconv.FormatInt(value, 10), -maxExact <= value && value <= maxExact)
	case float32:
		e.float(float64(value), 32)
	case float64:
		e.float(value, 64)
	case rune:
		e.text(string(value))
	case string:
		if len(e.out)+len(value) > e.limit {
			return errTooLarge
		}
		e.text(value)
	case []byte:
		return e.bytes(value)
	case []any:
		return e.values(t, value)
	case uint32:
		e.flags(t, value)
	case component.Case:
		return e.choice(t, value)
	default:
		return errors.New("the value has no JSON form")
	}
	return nil
}

// integer appends an integer: as a text where JSON readers may not be exact.
func (e *encoder) integer(digits string, exact bool) {
	if !exact {
		digits = `"` + digits + `"`
	}
	e.raw(digits)
}

func (e *encoder) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		e.text(notANumber)
	case math.IsInf(f, 1):
		e.text(infinity)
	case math.IsInf(f, -1):
		e.text("-" + infinity)
	default:
		e.out = strconv.AppendFloat(e.out, f, 'g', -1, bits)
	}
}

func (e *encoder) bytes(data []byte) error {
	if len(e.out)+base64.StdEncoding.EncodedLen(len(data)) > e.limit {
		return errTooLarge
	}
	e.raw(`"`)
	e.out = base64.StdEncoding.AppendEncode(e.out, data)
	e.raw(`"`)
	return nil
}

// values appends a list, tuple, map or record.
func (e *encoder) values(t *component.Type, values []any) error {
	brackets := "[]"
	if isObject(t) {
		brackets = "{}"
	}
	e.raw(brackets[:1])
	for i, value := range values {
		if i > 0 {
			e.raw(",")
		}
		if err := e.element(t, i, value); err != nil {
			return err
		}
	}
	e.raw(brackets[1:])
	return nil
}

// element appends the element of a list, tuple, map or record.
func (e *encoder) element(t *component.Type, i int, value any) error {
	switch t.Kind {
	case component.KindRecord:
		e.text(t.Fields[i].Name)
		e.raw(":")
		return e.value(t.Fields[i].Type, value)
	case component.KindTuple:
		return e.value(t.Fields[i].Type, value)
	case component.KindList:
		return e.value(t.Elem, value)
	}
	pair := value.([]any)
	before, between, after := "[", ",", "]"
	if hasTextKeys(t) {
		before, between, after = "", ":", ""
	}
	e.raw(before)
	if err := e.value(t.Elem, pair[0]); err != nil {
		return err
	}
	e.raw(between)
	err := e.value(t.Err, pair[1])
	e.raw(after)
	return err
}

func (e *encoder) flags(t *component.Type, flags uint32) {
	e.raw("[")
	first := true
	for i := range t.Fields {
		if flags>>i&1 == 0 {
			continue
		}
		if !first {
			e.raw(",")
		}
		first = false
		e.text(t.Fields[i].Name)
	}
	e.raw("]")
}

// choice appends an enum, option, variant or result.
func (e *encoder) choice(t *component.Type, c component.Case) error {
	switch t.Kind {
	case component.KindEnum:
		e.text(t.Fields[c.Number].Name)
		return nil
	case component.KindOption:
		switch {
		case c.Number == 0:
			e.raw("null")
			return nil
		case t.Elem.Kind == component.KindOption:
			return e.single(someKey, t.Elem, c.Value)
		}
		return e.value(t.Elem, c.Value)
	case component.KindResult:
		if c.Number == 0 {
			return e.single(okKey, t.Elem, c.Value)
		}
		return e.single(errKey, t.Err, c.Value)
	}
	field := t.Fields[c.Number]
	e.raw(`{"` + tagKey + `":`)
	e.text(field.Name)
	if field.Type != nil {
		e.raw(`,"` + valKey + `":`)
		if err := e.value(field.Type, c.Value); err != nil {
			return err
		}
	}
	e.raw("}")
	return nil
}

// single appends an object with one property. t is nil for a value without payload.
func (e *encoder) single(key string, t *component.Type, value any) error {
	e.raw(`{"` + key + `":`)
	if t == nil {
		e.raw("null")
	} else if err := e.value(t, value); err != nil {
		return err
	}
	e.raw("}")
	return nil
}

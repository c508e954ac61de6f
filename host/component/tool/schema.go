package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/internal/toolschema"
)

// jsonObject is a JSON object that is made here.
type jsonObject = map[string]any

// maxSchemas bounds the parts of a schema, and maxSchemaDepth how deep its types nest: manifests accept
// 2,000 subschemas and 64 levels of JSON.
const maxSchemas, maxSchemaDepth = 2000, 24

var errLargeTypes = errors.New("its types are too large for a JSON Schema: simplify them, or split the function")

// schemas makes the JSON Schemas of types. Those of results have the one form that encode writes, those of arguments
// all that decode reads.
type schemas struct {
	result bool
	// count is the number of types so far. Each has a schema at least.
	count int
}

// inputSchema returns the schema of a function's arguments.
func inputSchema(f *component.Func) (json.RawMessage, error) {
	s := &schemas{}
	schema, err := s.object(f.Params, 0)
	if err != nil {
		return nil, err
	}
	return marshalSchema(schema)
}

// marshalSchema encodes a schema that manifests accept.
func marshalSchema(schema jsonObject) (json.RawMessage, error) {
	if toolschema.Parts(schema) > maxSchemas {
		return nil, errLargeTypes
	}
	return json.Marshal(schema)
}

// outputSchema returns the schema of a function's structured result; nil if it has none: a text or nothing.
func outputSchema(f *component.Func) (json.RawMessage, error) {
	s := &schemas{result: true}
	if f.Result != nil && f.Result.Kind == component.KindResult && f.Result.Err != nil {
		// The error becomes a text, so it has no schema. It must have a JSON form.
		if _, err := s.of(f.Result.Err, 0); err != nil {
			return nil, err
		}
	}
	success := successType(f)
	if success == nil || success.Kind == component.KindString {
		return nil, nil
	}
	schema, err := s.of(success, 0)
	if err != nil {
		return nil, err
	}
	if !isObject(success) {
		schema = jsonObject{"type": "object", "properties": jsonObject{resultKey: schema},
			"required": []string{resultKey}}
	}
	return marshalSchema(schema)
}

// resultKey is the property of a structured result whose type is no object.
const resultKey = "result"

// successType returns the type of a result without its error; nil for none.
func successType(f *component.Func) *component.Type {
	if f.Result != nil && f.Result.Kind == component.KindResult {
		return f.Result.Elem
	}
	return f.Result
}

// isObject reports whether all values of the type are JSON objects.
func isObject(t *component.Type) bool { return t.Kind == component.KindRecord || hasTextKeys(t) }

// hasTextKeys reports whether the type is a map that becomes a JSON object.
func hasTextKeys(t *component.Type) bool {
	return t.Kind == component.KindMap && t.Elem.Kind == component.KindString
}

// of returns the schema of a type.
func (s *schemas) of(t *component.Type, depth int) (jsonObject, error) {
	if s.count++; s.count > maxSchemas || depth > maxSchemaDepth {
		return nil, errLargeTypes
	}
	if bits, signed, ok := integerType(t.Kind); ok {
		return s.integer(bits, signed), nil
	}
	switch t.Kind {
	case component.KindBool:
		return jsonObject{"type": "boolean"}, nil
	case component.KindF32, component.KindF64:
		return s.float(), nil
	case component.KindChar:
		return jsonObject{"type": "string", "minLength": 1, "maxLength": 1}, nil
	case component.KindString:
		return jsonObject{"type": "string"}, nil
	case component.KindList:
		return s.list(t, depth)
	case component.KindMap:
		return s.mapping(t, depth)
	case component.KindTuple:
		return s.tuple(t, depth)
	case component.KindRecord:
		return s.object(t.Fields, depth)
	case component.KindEnum:
		return jsonObject{"type": "string", "enum": fieldNames(t)}, nil
	case component.KindFlags:
		return jsonObject{"type": "array", "uniqueItems": true,
			"items": jsonObject{"type": "string", "enum": fieldNames(t)}}, nil
	case component.KindOption:
		return s.option(t, depth)
	case component.KindVariant:
		return s.variant(t, depth)
	case component.KindResult:
		return s.either(t, depth)
	case component.KindOwn, component.KindBorrow:
		return nil, fmt.Errorf("it has a handle of a resource (%s), which callers cannot hold", t)
	}
	return nil, component.ErrAsync
}

// integerType returns the size of a kind of integers.
func integerType(kind component.Kind) (bits int, signed, ok bool) {
	if kind < component.KindS8 || kind > component.KindU64 {
		return 0, false, false
	}
	n := int(kind - component.KindS8)
	return 8 << (n / 2), n%2 == 0, true
}

// maxExact is the largest integer up to which every JSON reader is exact.
const maxExact = 1 << 53

func (s *schemas) integer(bits int, signed bool) jsonObject {
	low, high := int64(0), uint64(math.MaxUint64)>>(64-bits)
	if signed {
		high >>= 1
		low = -int64(high) - 1
	}
	if bits < 64 {
		return jsonObject{"type": "integer", "minimum": low, "maximum": high}
	}
	text := jsonObject{"type": "string", "pattern": "^[0-9]{1,20}$"}
	if signed {
		text["pattern"] = "^-?[0-9]{1,19}$"
	}
	return jsonObject{"anyOf": []any{jsonObject{"type": "integer", "minimum": low, "maximum": high}, text}}
}

func (s *schemas) float() jsonObject {
	number := jsonObject{"type": "number"}
	if !s.result {
		return number
	}
	return jsonObject{"anyOf": []any{number,
		jsonObject{"type": "string", "enum": []string{notANumber, infinity, "-" + infinity}}}}
}

// Texts of floating-point numbers that JSON does not have.
const notANumber, infinity = "NaN", "Infinity"

func (s *schemas) list(t *component.Type, depth int) (jsonObject, error) {
	items, err := s.of(t.Elem, depth+1)
	if err != nil {
		return nil, err
	}
	array := jsonObject{"type": "array", "items": items}
	if t.Length > 0 {
		array["minItems"], array["maxItems"] = t.Length, t.Length
	}
	if t.Elem.Kind != component.KindU8 {
		return array, nil
	}
	text := jsonObject{"type": "string", "contentEncoding": "base64"}
	if s.result {
		return text, nil
	}
	return jsonObject{"anyOf": []any{text, array}}, nil
}

func (s *schemas) mapping(t *component.Type, depth int) (jsonObject, error) {
	if !hasTextKeys(t) {
		pair := &component.Type{Kind: component.KindTuple, Fields: []component.Field{{Type: t.Elem}, {Type: t.Err}}}
		items, err := s.of(pair, depth+1)
		return jsonObject{"type": "array", "items": items}, err
	}
	values, err := s.of(t.Err, depth+1)
	return jsonObject{"type": "object", "additionalProperties": values}, err
}

func (s *schemas) tuple(t *component.Type, depth int) (jsonObject, error) {
	items := make([]any, len(t.Fields))
	for i, f := range t.Fields {
		var err error
		if items[i], err = s.of(f.Type, depth+1); err != nil {
			return nil, err
		}
	}
	return jsonObject{"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}, nil
}

// object returns the schema of a record, or of arguments.
func (s *schemas) object(fields []component.Field, depth int) (jsonObject, error) {
	properties, required := jsonObject{}, []string{}
	for _, f := range fields {
		schema, err := s.of(f.Type, depth+1)
		if err != nil {
			return nil, err
		}
		properties[f.Name] = schema
		if s.result || f.Type.Kind != component.KindOption {
			required = append(required, f.Name)
		}
	}
	return closed(properties, required...), nil
}

// closed returns the schema of an object with no other properties.
func closed(properties jsonObject, required ...string) jsonObject {
	schema := jsonObject{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func (s *schemas) option(t *component.Type, depth int) (jsonObject, error) {
	elem, err := s.of(t.Elem, depth+1)
	if err != nil {
		return nil, err
	}
	if t.Elem.Kind == component.KindOption { // its null is not the outer one
		elem = closed(jsonObject{someKey: elem}, someKey)
	}
	return jsonObject{"anyOf": []any{elem, jsonObject{"type": "null"}}}, nil
}

// Properties of the objects that options of options, variants and results become.
const (
	someKey = "some"
	tagKey  = "tag"
	valKey  = "val"
	okKey   = "ok"
	errKey  = "err"
)

func (s *schemas) variant(t *component.Type, depth int) (jsonObject, error) {
	cases := make([]any, len(t.Fields))
	for i, f := range t.Fields {
		properties := jsonObject{tagKey: jsonObject{"type": "string", "enum": []string{f.Name}}}
		required := []string{tagKey}
		if f.Type != nil {
			schema, err := s.of(f.Type, depth+1)
			if err != nil {
				return nil, err
			}
			properties[valKey] = schema
			required = append(required, valKey)
		}
		cases[i] = closed(properties, required...)
	}
	return jsonObject{"anyOf": cases}, nil
}

// either returns the schema of a result that is not the result of a function.
func (s *schemas) either(t *component.Type, depth int) (jsonObject, error) {
	cases := []any{}
	for _, c := range []component.Field{{Name: okKey, Type: t.Elem}, {Name: errKey, Type: t.Err}} {
		payload := jsonObject{"type": "null"}
		if c.Type != nil {
			var err error
			if payload, err = s.of(c.Type, depth+1); err != nil {
				return nil, err
			}
		}
		cases = append(cases, closed(jsonObject{c.Name: payload}, c.Name))
	}
	return jsonObject{"anyOf": cases}, nil
}

func fieldNames(t *component.Type) []string {
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
	}
	return names
}

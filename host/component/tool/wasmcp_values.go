package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// recordFields are the values of a record's fields: string, recordFields or variantCase.
type recordFields map[string]any

// variantCase is a case of a variant, by name.
type variantCase struct {
	name    string
	payload any
}

// unknown is the error for what the component does not know.
func (f recordFields) unknown() *abi.Error {
	what, _ := f["name"].(string)
	if uri, ok := f["uri"].(string); ok {
		what = uri
	}
	return notFound("the component does not know " + what).Error
}

// fill returns a value of the type: records have what is given for fields of these names, all else is zero or empty.
// Versions of wasmcp differ in the other fields.
func fill(t *component.Type, value any) any {
	switch t.Kind {
	case component.KindRecord, component.KindTuple:
		fields, _ := value.(recordFields)
		values := make([]any, len(t.Fields))
		for i, field := range t.Fields {
			values[i] = fill(field.Type, fields[field.Name])
		}
		return values
	case component.KindString:
		text, _ := value.(string)
		return text
	case component.KindBool:
		return false
	case component.KindF32:
		return float32(0)
	case component.KindF64:
		return float64(0)
	case component.KindChar:
		return rune(0)
	case component.KindFlags:
		return uint32(0)
	case component.KindList, component.KindMap:
		switch {
		case t.Length > 0:
			return nil // lowering fails: wasmcp has no lists of fixed length
		case t.Kind == component.KindList && t.Elem.Kind == component.KindU8:
			return []byte{}
		}
		return []any{}
	case component.KindOption:
		if value == nil {
			return component.None
		}
		return component.Some(fill(t.Elem, value))
	case component.KindEnum:
		return component.Case{}
	case component.KindVariant:
		return fillVariant(t, value)
	case component.KindResult:
		if t.Elem != nil {
			return component.OK(fill(t.Elem, nil))
		}
		return component.OK(nil)
	}
	if _, signed, ok := integerType(t.Kind); ok && signed {
		return int64(0)
	}
	return uint64(0)
}

// fillVariant returns the chosen case; without one, or if the type has none of that name, the first.
func fillVariant(t *component.Type, value any) component.Case {
	choice, _ := value.(variantCase)
	number := max(0, slices.IndexFunc(t.Fields, func(f component.Field) bool { return f.Name == choice.name }))
	c := component.Case{Number: uint32(number)}
	if payload := t.Fields[number].Type; payload != nil {
		c.Value = fill(payload, choice.payload)
	}
	return c
}

// mcpForm converts values of wasmcp's types to MCP's JSON.
type mcpForm struct {
	// limit bounds the bytes of the texts; size counts them.
	limit, size int64
}

// blockTypes are MCP's names of content blocks, by the cases of content-block.
var blockTypes = map[string]string{"text": abi.Text, "image": abi.Image, "audio": abi.Audio,
	"resource-link": abi.ResourceLink, "embedded-resource": abi.Embedded}

// of returns a value in MCP's form: names of fields in camel case, without those that are none, and variants as their
// payloads.
func (m *mcpForm) of(t *component.Type, value any) (any, error) {
	switch value := value.(type) {
	case string:
		m.size += int64(len(value))
	case []byte:
		m.size += int64(len(value)) / 3 * 4
	case []any:
		m.size += int64(len(value))
	}
	if m.size > m.limit {
		return nil, errTooLarge
	}
	switch t.Kind {
	case component.KindRecord:
		return m.record(t, value.([]any))
	case component.KindList:
		values, ok := value.([]any)
		if !ok {
			return value, nil // bytes
		}
		list := make([]any, len(values))
		for i := range values {
			var err error
			if list[i], err = m.of(t.Elem, values[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case component.KindEnum:
		return t.Fields[value.(component.Case).Number].Name, nil
	case component.KindOption:
		if c := value.(component.Case); c.Number == 1 {
			return m.of(t.Elem, c.Value)
		}
		return nil, nil
	case component.KindVariant:
		return m.variant(t, value.(component.Case))
	case component.KindBool, component.KindString, component.KindF64, component.KindS64, component.KindU64:
		return value, nil
	}
	return nil, fmt.Errorf("hako does not take a %s", t)
}

// record returns the fields of a record, and those of its field options, which MCP does not keep apart.
func (m *mcpForm) record(t *component.Type, values []any) (any, error) {
	object := jsonObject{}
	for i, field := range t.Fields {
		if field.Name == "meta" || field.Name == "icons" {
			continue
		}
		value, err := m.of(field.Type, values[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		options, ok := value.(jsonObject)
		switch {
		case value == nil:
		case ok && field.Name == "options":
			maps.Copy(object, options)
		case isJSONField(field.Name):
			text, _ := value.(string)
			if !json.Valid([]byte(text)) {
				return nil, fmt.Errorf("%s is not valid JSON", field.Name)
			}
			object[camelCase(field.Name)] = json.RawMessage(text)
		default:
			object[camelCase(field.Name)] = value
		}
	}
	return object, nil
}

// isJSONField reports whether the text of a field is JSON.
func isJSONField(name string) bool {
	return name == "input-schema" || name == "output-schema" || name == "structured-content"
}

func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
	}
	return strings.Join(words, "")
}

func (m *mcpForm) variant(t *component.Type, c component.Case) (any, error) {
	field := t.Fields[c.Number]
	if strings.HasSuffix(field.Name, "-stream") {
		return nil, fmt.Errorf("hako does not take streams: send the data itself (%s)",
			strings.TrimSuffix(field.Name, "-stream"))
	}
	if field.Type == nil {
		return field.Name, nil
	}
	payload, err := m.of(field.Type, c.Value)
	if object, ok := payload.(jsonObject); ok && blockTypes[field.Name] != "" {
		object["type"] = blockTypes[field.Name]
	}
	return payload, err
}

// failure converts an error-code.
func (m *mcpForm) failure(f *Function, value any) *abi.Error {
	failed := &abi.Error{Code: abi.CodeInternal, Message: f.Export + " failed"}
	t := f.Type.Result.Err
	if t == nil || t.Kind != component.KindVariant {
		return failed
	}
	c := value.(component.Case)
	switch t.Fields[c.Number].Name {
	case "parse-error", "invalid-request", "invalid-params":
		failed.Code = abi.CodeInvalid
	case "method-not-found":
		failed.Code = abi.CodeNotFound
	}
	form, err := m.of(t, value)
	if object, ok := form.(jsonObject); ok && err == nil {
		if message, _ := object["message"].(string); message != "" {
			failed.Message = message
		}
	}
	return failed
}

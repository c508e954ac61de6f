package elicitation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/visible"
)

// Form is a form of flat fields (MCP, elicitation, requested schema).
type Form struct {
	// Fields lists the required fields first, each group sorted by name.
	Fields []Field
	// required has the names of the required fields.
	required []string
}

const (
	maxFields   = 20
	maxOptions  = 100
	maxName     = 64
	maxTitle    = 200
	maxText     = 1000     // of a description, an option and a default
	maxAnswered = 16 << 10 // of one field of an answer
	maxPattern  = 256
)

// parseForm parses a schema. It ignores keywords that the specification does not define for the type of the field.
func parseForm(schema json.RawMessage) (*Form, error) {
	if len(schema) > maxSchema {
		return nil, rule("its form is larger than %d KiB", maxSchema>>10)
	}
	var read struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(schema) > 0 && json.Unmarshal(schema, &read) != nil || read.Type != "" && read.Type != "object" {
		return nil, rule("the schema of its form is not one of an object")
	}
	if len(read.Properties) > maxFields {
		return nil, rule("its form has more than %d fields", maxFields)
	}
	f := new(Form)
	for name, property := range read.Properties {
		if name == "" || len(name) > maxName || visible.Text(name) != name {
			return nil, rule("its form has a field without a usable name: 1 to %d bytes, none of them invisible",
				maxName)
		}
		field, err := parseField(name, property)
		if err != nil {
			return nil, err
		}
		field.Required = slices.Contains(read.Required, name)
		f.Fields = append(f.Fields, *field)
	}
	for _, name := range read.Required {
		if _, ok := read.Properties[name]; !ok {
			return nil, rule("its form requires a field that it does not have")
		}
	}
	slices.SortFunc(f.Fields, func(a, b Field) int {
		return cmp.Or(order(b.Required)-order(a.Required), cmp.Compare(a.Name, b.Name))
	})
	f.required = slices.Compact(slices.Sorted(slices.Values(read.Required)))
	if len(f.Schema()) > maxSchema {
		return nil, rule("its form is larger than %d KiB", maxSchema>>10)
	}
	return f, nil
}

func order(required bool) int {
	if required {
		return 1
	}
	return 0
}

// Schema returns the form as a JSON Schema with only the keywords that Parse accepted.
func (f *Form) Schema() json.RawMessage {
	properties := map[string]any{}
	for _, field := range f.Fields {
		properties[field.Name] = field.schema
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(f.required) > 0 {
		schema["required"] = f.required
	}
	encoded, _ := json.Marshal(schema) // cannot fail: it was decoded from JSON
	return encoded
}

// Check validates and normalizes the content of an answer. It fails with a *Problem for the first invalid field or an
// unknown one. Empty optional fields are removed.
func (f *Form) Check(content map[string]any) (map[string]any, error) {
	checked, rest := map[string]any{}, maps.Clone(content)
	for i := range f.Fields {
		field := &f.Fields[i]
		value, given := rest[field.Name]
		delete(rest, field.Name)
		if text, ok := value.(string); !given || value == nil || ok && text == "" && !field.Required {
			if field.Required {
				return nil, missing(field)
			}
			continue
		}
		value, err := field.Check(value)
		if err != nil {
			return nil, err
		}
		checked[field.Name] = value
	}
	for name := range rest {
		return nil, &Problem{Field: name[:min(len(name), maxName)], english: "is not a field of the form",
			japanese: "はフォームにない項目です"}
	}
	return checked, nil
}

// Problem describes what is wrong with the value of a field. It does not quote the value.
type Problem struct {
	// Field is the name of the field.
	Field             string
	label             string
	english, japanese string
}

func problem(f *Field, english, japanese string, args ...any) *Problem {
	if len(args) > 0 {
		english, japanese = fmt.Sprintf(english, args...), fmt.Sprintf(japanese, args...)
	}
	return &Problem{f.Name, f.Label(), english, japanese}
}

func missing(f *Field) *Problem { return problem(f, "is missing", "が入力されていません") }

func (p *Problem) Error() string { return fmt.Sprintf("the field %s %s", p.Field, p.english) }

// Text returns the problem in a language, a BCP 47 tag: Japanese, else English.
func (p *Problem) Text(language string) string {
	label := cmp.Or(p.label, p.Field)
	if lang.Japanese(language) {
		return label + p.japanese
	}
	return label + " " + p.english
}

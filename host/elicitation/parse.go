package elicitation

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/hako-run/hako/internal/strictjson"
)

// property is a field's schema with the keywords of all types.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`

	MinLength *int   `json:"minLength"`
	MaxLength *int   `json:"maxLength"`
	Pattern   string `json:"pattern"`
	Format    string `json:"format"`

	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`

	Enum      []string `json:"enum"`
	EnumNames []string `json:"enumNames"`
	OneOf     []option `json:"oneOf"`

	MinItems *int `json:"minItems"`
	MaxItems *int `json:"maxItems"`
	Items    *struct {
		Type  string   `json:"type"`
		Enum  []string `json:"enum"`
		AnyOf []option `json:"anyOf"`
	} `json:"items"`
}

type option struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// parseField parses the schema of one field.
func parseField(name string, data json.RawMessage) (*Field, error) {
	var p property
	if strictjson.Unmarshal(data, &p) != nil {
		return nil, rule("the field %s is not one of a text, a number, a yes or no, or a choice of texts", name)
	}
	f := &Field{Name: name, Title: oneLine(p.Title), Description: oneLine(p.Description),
		schema: map[string]any{"type": p.Type}}
	var preset bytes.Buffer
	json.HTMLEscape(&preset, p.Default) // as Schema encodes it
	if len(f.Title) > maxTitle || len(f.Description) > maxText || preset.Len() > maxText {
		return nil, rule("the texts of the field %s are too long", name)
	}
	f.acceptKeyword("title", f.Title, f.Title != "")
	f.acceptKeyword("description", f.Description, f.Description != "")
	var err error
	switch p.Type {
	case "string":
		err = f.readString(&p)
	case "number", "integer":
		f.Kind, f.minimum, f.maximum = Kind(p.Type), p.Minimum, p.Maximum
		f.acceptKeyword("minimum", p.Minimum, p.Minimum != nil)
		f.acceptKeyword("maximum", p.Maximum, p.Maximum != nil)
	case "boolean":
		f.Kind = Boolean
	case "array":
		err = f.readArray(&p)
	default:
		err = rule("the field %s has a type that forms do not have: "+
			"it must be string, number, integer, boolean, or array of a choice", name)
	}
	if err != nil {
		return nil, err
	}
	f.setDefault(p.Default)
	return f, nil
}

// acceptKeyword adds a keyword to the accepted schema if it is present.
func (f *Field) acceptKeyword(keyword string, value any, is bool) {
	if is {
		f.schema[keyword] = value
	}
}

func (f *Field) readString(p *property) error {
	switch {
	case len(p.Enum) > 0:
		f.Kind = Choice
		if len(p.EnumNames) > 0 && len(p.EnumNames) != len(p.Enum) {
			return rule("the field %s does not have as many enumNames as options", f.Name)
		}
		if err := f.setOptions(p.Enum, p.EnumNames); err != nil {
			return err
		}
		f.schema["enum"] = p.Enum
		f.acceptKeyword("enumNames", f.titles(), len(p.EnumNames) > 0)
		return nil
	case len(p.OneOf) > 0:
		f.Kind = Choice
		err := f.setOptions(split(p.OneOf))
		f.schema["oneOf"] = f.titled()
		return err
	}
	f.Kind, f.minLength, f.maxLength = Text, p.MinLength, p.MaxLength
	f.acceptKeyword("minLength", p.MinLength, p.MinLength != nil)
	f.acceptKeyword("maxLength", p.MaxLength, p.MaxLength != nil)
	if _, known := formats[p.Format]; known {
		f.Format, f.schema["format"] = p.Format, p.Format
	} else if p.Format != "" {
		return rule("the field %s has a format that forms do not have: email, uri, date and date-time are known",
			f.Name)
	}
	if p.Pattern == "" {
		return nil
	}
	var err error
	if f.pattern, err = regexp.Compile(p.Pattern); err != nil || len(p.Pattern) > maxPattern {
		return rule("the field %s has a pattern that cannot be checked", f.Name)
	}
	f.schema["pattern"] = p.Pattern
	return nil
}

func (f *Field) readArray(p *property) error {
	if p.Items == nil || len(p.Items.Enum)+len(p.Items.AnyOf) == 0 {
		return rule("the field %s is a list, and not one of options", f.Name)
	}
	f.Kind, f.minLength, f.maxLength = Choices, p.MinItems, p.MaxItems
	f.acceptKeyword("minItems", p.MinItems, p.MinItems != nil)
	f.acceptKeyword("maxItems", p.MaxItems, p.MaxItems != nil)
	if len(p.Items.AnyOf) > 0 {
		err := f.setOptions(split(p.Items.AnyOf))
		f.schema["items"] = map[string]any{"anyOf": f.titled()}
		return err
	}
	f.schema["items"] = map[string]any{"type": "string", "enum": p.Items.Enum}
	return f.setOptions(p.Items.Enum, nil)
}

func split(list []option) (values, titles []string) {
	for _, o := range list {
		values, titles = append(values, o.Const), append(titles, o.Title)
	}
	return values, titles
}

// setOptions sets the options of the field. titles may be nil.
func (f *Field) setOptions(values, titles []string) error {
	if len(values) > maxOptions {
		return rule("the field %s has more than %d options", f.Name, maxOptions)
	}
	for i, value := range values {
		o := Option{value, oneLine(value)}
		if titles != nil && titles[i] != "" {
			o.Title = oneLine(titles[i])
		}
		if value == "" || len(value) > maxText || len(o.Title) > maxText || f.offers(value) {
			return rule("the field %s has an option that is empty, too long or a duplicate", f.Name)
		}
		f.Options = append(f.Options, o)
	}
	return nil
}

func (f *Field) titles() (list []string) {
	for _, o := range f.Options {
		list = append(list, o.Title)
	}
	return list
}

// titled returns the options as schemas.
func (f *Field) titled() (list []option) {
	for _, o := range f.Options {
		list = append(list, option{o.Value, o.Title})
	}
	return list
}

// setDefault sets the default if it is valid for the field, and ignores it otherwise.
func (f *Field) setDefault(text json.RawMessage) {
	var value any
	if json.Unmarshal(text, &value) != nil || value == nil {
		return
	}
	if value, err := f.Check(value); err == nil {
		f.Default, f.schema["default"] = value, value
	}
}

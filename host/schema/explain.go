package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
)

// maxFailures bounds the failures that explain a value.
const maxFailures = 1000

// maxPath bounds the path of a problem, in characters.
const maxPath = 200

// explain turns what the validator reports about value into an *Error.
func (s *Schema) explain(value any, err error) error {
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return jsonError("", err.Error())
	}
	x := explainer{value: value, byLocation: s.byLocation}
	problems := x.problems(failed)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return strings.Compare(a.Path+"\x00"+a.Message, b.Path+"\x00"+b.Message)
	})
	var e Error
	for _, p := range slices.Compact(problems) {
		e.Add(clip.Runes(p.Path, maxPath), "%s", clip.Runes(p.Message, 600))
	}
	return e.Err()
}

// schemaError turns what the compiler reports about the schema doc into an *Error.
func schemaError(doc any, err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		return (&Schema{}).explain(doc, invalid.Err)
	}
	return jsonError("", "is not a valid schema: "+strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// explainer words failures for somebody who sees the value but not the schema.
type explainer struct {
	value      any
	byLocation map[string]*jsonschema.Schema
	seen       int
}

func (x *explainer) problems(e *jsonschema.ValidationError) []Problem {
	if x.seen++; x.seen > maxFailures {
		return nil
	}
	path := x.path(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		return x.all(e.Causes)
	case *kind.AnyOf:
		return x.alternatives(path, e)
	case *kind.OneOf:
		if k.Subschemas != nil {
			return one(path, "matches more than one of the alternatives: exactly one is allowed")
		}
		return x.alternatives(path, e)
	case *kind.Required:
		return x.missing(path, e.SchemaURL, k.Missing, "is missing")
	case *kind.DependentRequired:
		return x.missing(path, e.SchemaURL, k.Missing, fmt.Sprintf("is missing: required together with %q",
			clip.Runes(k.Prop, 60)))
	case *kind.AdditionalProperties:
		return x.unknown(path, e.SchemaURL, k.Properties)
	case *kind.PropertyNames:
		return x.propertyName(k.Property)
	case *kind.Enum:
		return one(path, x.enum(e.InstanceLocation, k.Want))
	}
	return one(path, message(e.ErrorKind)+x.described(e))
}

// described returns what the schema says about a value that must match a pattern, which few people can read.
func (x *explainer) described(e *jsonschema.ValidationError) string {
	s := x.byLocation[e.SchemaURL]
	if _, ok := e.ErrorKind.(*kind.Pattern); !ok || s == nil || s.Description == "" {
		return ""
	}
	return " (" + clip.Runes(visible.Line(strings.TrimSpace(s.Description)), 200) + ")"
}

func one(path, message string) []Problem {
	return []Problem{{Path: path, Message: message}}
}

func (x *explainer) all(causes []*jsonschema.ValidationError) []Problem {
	var problems []Problem
	for _, c := range causes {
		problems = append(problems, x.problems(c)...)
	}
	return problems
}

// alternatives explains a value that fits none of several: by the one that it was probably meant for, if that is clear.
func (x *explainer) alternatives(path string, e *jsonschema.ValidationError) []Problem {
	best, bestMismatches, unique := -1, 0, false
	for i, branch := range e.Causes {
		n := mismatches(branch, len(e.InstanceLocation))
		if best < 0 || n < bestMismatches {
			best, bestMismatches, unique = i, n, true
		} else if n == bestMismatches {
			unique = false
		}
	}
	if unique {
		return x.problems(e.Causes[best])
	}
	const most = 3
	var texts []string
	for i, branch := range e.Causes {
		if i == most {
			texts = append(texts, fmt.Sprintf("%d more", len(e.Causes)-most))
			break
		}
		if problems := x.problems(branch); len(problems) > 0 {
			texts = append(texts, relative(problems[0], path))
		}
	}
	return one(path, "fits none of the alternatives: "+strings.Join(texts, "; or "))
}

func relative(p Problem, path string) string {
	if p.Path = strings.TrimPrefix(strings.TrimPrefix(p.Path, path), "."); p.Path == "" {
		return p.Message
	}
	return p.String()
}

// mismatches counts the failures that say "this alternative is not the one that was meant": another type or constant,
// in the value at depth or right below it.
func mismatches(e *jsonschema.ValidationError, depth int) int {
	switch e.ErrorKind.(type) {
	case *kind.Type, *kind.Const, *kind.Enum, *kind.FalseSchema:
		if len(e.InstanceLocation) <= depth+1 {
			return 1
		}
	}
	n := 0
	for _, c := range e.Causes {
		n += mismatches(c, depth)
	}
	return n
}

func (x *explainer) missing(path, location string, names []string, text string) []Problem {
	problems := make([]Problem, 0, len(names))
	for _, name := range names {
		what := ""
		if s := x.byLocation[location]; s != nil {
			if p := s.Properties[name]; p != nil && p.Types != nil {
				what = ", " + typeNames(p.Types.ToStrings())
			}
		}
		problems = append(problems, Problem{Path: strictyaml.Key(path, name), Message: text + what})
	}
	return problems
}

func (x *explainer) unknown(path, location string, names []string) []Problem {
	var known []string
	if s := x.byLocation[location]; s != nil {
		for name := range s.Properties {
			known = append(known, name)
		}
	}
	problems := make([]Problem, 0, len(names))
	for _, name := range names {
		problems = append(problems, Problem{Path: path, Message: strictyaml.Unknown("property", name, known).Error()})
	}
	return problems
}

// propertyName explains a property whose name is not allowed. The validator reuses the memory of the location that it
// reports, so the place is looked for instead; if several objects have such a property, none is named.
func (x *explainer) propertyName(name string) []Problem {
	path := ""
	if holders := holders(x.value, name, nil, nil); len(holders) == 1 {
		path = x.path(holders[0])
	}
	return one(path, fmt.Sprintf("the property name %q is not allowed", clip.Runes(name, 60)))
}

// holders appends to found the locations of the objects at and below location that have a property called name.
func holders(value any, name string, location []string, found [][]string) [][]string {
	switch value := value.(type) {
	case map[string]any:
		if _, has := value[name]; has {
			found = append(found, slices.Clone(location))
		}
		for key, member := range value {
			found = holders(member, name, append(location, key), found)
		}
	case []any:
		for i, item := range value {
			found = holders(item, name, append(location, strconv.Itoa(i)), found)
		}
	}
	return found
}

func (x *explainer) enum(location []string, want []any) string {
	text := "must be one of " + Constants(want)
	var known []string
	for _, w := range want {
		if s, ok := w.(string); ok {
			known = append(known, s)
		}
	}
	if got, ok := member(x.value, location).(string); ok {
		if near := strictyaml.Nearest(got, known); near != "" {
			text += fmt.Sprintf(": did you mean %q?", near)
		}
	}
	return text
}

// path returns the path of the member of the value at location.
func (x *explainer) path(location []string) string {
	path, value := "", x.value
	for _, token := range location {
		i, err := strconv.Atoi(token)
		if _, isArray := value.([]any); isArray && err == nil {
			path = strictyaml.Index(path, i)
		} else {
			path = strictyaml.Key(path, token)
		}
		value = member(value, []string{token})
	}
	return path
}

// member returns the member of value at location, or nil.
func member(value any, location []string) any {
	for _, token := range location {
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

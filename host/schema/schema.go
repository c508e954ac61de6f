// Package schema compiles JSON Schemas that are not trusted, and validates values with them at a bounded cost. Compile
// returns a Schema, whose errors tell a model what is wrong with a value; Decode reads JSON as strictly as they do.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hako-run/hako/internal/bytepool"
	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/toolschema"
	"github.com/hako-run/hako/internal/visible"
)

// Problem and Error say what is wrong with a schema or a value, and where.
type (
	Problem = strictyaml.Problem
	Error   = strictyaml.Error
)

// Bounds of a schema. Together with maxWork they keep a hostile schema from holding up the host.
const (
	maxSchemaBytes   = 256 << 10
	maxSubschemas    = 2000
	maxPatternLength = 1000
	maxPatternSize   = 1000   // instructions of the compiled pattern, each of which takes about 45 bytes
	maxPatterns      = 10_000 // instructions of all patterns
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// schemaURL names the schema being compiled; nothing is ever fetched from it.
const schemaURL = "hako:schema"

// Schema is a compiled JSON Schema, draft 2020-12, safe for concurrent use.
//
// As that draft has it, "format" is an annotation and asserts nothing.
type Schema struct {
	compiled *jsonschema.Schema
	// byLocation finds a subschema by the location that a failure names.
	byLocation map[string]*jsonschema.Schema
	costs      []cost
	spellings  spellings
	patterns   int
	// names is nil if clients are shown all properties under their own names.
	names *listedNames
}

// PatternSize returns the number of instructions of all compiled patterns, each of which takes about 45 bytes.
func (s *Schema) PatternSize() int { return s.patterns }

// Compile compiles a JSON Schema whose root type is "object".
//
// The error is an *Error with paths within the schema. Refused are: what is not a valid schema of draft 2020-12,
// another $schema, a $ref to anything but a place in the schema itself ("#/$defs/name"), $dynamicRef, a nested $id,
// required properties of the root that properties does not list, a reference that leads back to itself, and what is too
// large: 256 KiB, 64 levels, 2,000 subschemas, a pattern of 1,000 bytes or instructions, patterns of 10,000
// instructions together, or alternatives that multiply.
func Compile(data []byte) (*Schema, error) {
	doc, err := decodeSchema(data)
	if err != nil {
		return nil, err
	}
	if err := screenSchema(doc); err != nil {
		return nil, err
	}
	patterns := &patternCompiler{compiled: map[string]pattern{}}
	names := toolschema.NamesOf(doc)
	compiled, err := compile(doc, patterns)
	if err != nil {
		return nil, schemaError(doc, err)
	}
	s := &Schema{names: newListedNames(names, data), compiled: compiled, patterns: patterns.size, byLocation: map[string]*jsonschema.Schema{},
		spellings: spellings{map[string]string{}, map[string][]string{}}}
	g := newSchemaGraph(compiled)
	for _, sub := range g.nodes {
		s.byLocation[sub.Location] = sub
		for _, name := range sortedKeys(sub.Properties) {
			s.spellings.add(name)
		}
	}
	if s.costs, err = g.costs(); err != nil {
		return nil, err
	}
	return s, nil
}

// Validate checks a JSON value. The error is an *Error that a model can act on: the path of each value that does not
// fit, what is allowed there, which properties are missing or unknown and what was probably meant. It repeats none of
// the value's contents but the names of properties.
//
// A value that is not valid JSON, repeats a key, nests deeper than 64 levels, holds more than 100,000 values or takes
// too many steps to check is an error too.
func (s *Schema) Validate(data []byte) error {
	return s.validate(data, new(shape), func(any) error { return nil })
}

// errTooMuchWork is the error for a value that takes too many steps to check.
var errTooMuchWork = jsonError("", "is too large to be checked against its schema: make it smaller")

// validate checks a value, and also with check if it matches the schema. It sets the shape of a value that is valid JSON.
func (s *Schema) validate(data []byte, found *shape, check func(value any) error) error {
	texts := bytepool.Get()
	defer bytepool.Put(texts) // errors have copies of what they quote
	d := jsonDecoder{tokens: jsonread.Reader{Data: data}, texts: *texts}
	value, shape, err := d.document()
	*texts = d.texts
	if err != nil {
		return err
	}
	*found = *shape
	if work(s.costs, shape) > maxWork {
		return errTooMuchWork
	}
	if err := s.compiled.Validate(value); err != nil {
		return s.explain(value, err)
	}
	return check(value)
}

func decodeSchema(data []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, jsonError("", `is missing: for a tool without arguments write {"type": "object"}`)
	}
	if len(data) > maxSchemaBytes {
		return nil, jsonError("", fmt.Sprintf("has %d bytes; at most %d are allowed", len(data), maxSchemaBytes))
	}
	value, shape, err := decodeJSON(data)
	if err != nil {
		return nil, err
	}
	if shape.forks > maxSubschemas {
		return nil, jsonError("", fmt.Sprintf("has more than %d subschemas", maxSubschemas))
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, jsonError("", `must be an object with type "object"`)
	}
	delete(doc, "$id") // a name for the whole; references go by "#"
	return doc, nil
}

// screenSchema checks what hako asks of a schema beyond being valid.
func screenSchema(doc map[string]any) error {
	var e Error
	if doc["type"] != "object" {
		e.Add("type", `the root's type must be "object"`)
	}
	screenRequired(&e, doc)
	screenKeywords(&e, "", doc)
	screenTexts(&e, "", doc)
	return e.Err()
}

// screenTexts looks at every text and every name of a property, for a model reads them all.
func screenTexts(e *Error, path string, value any) {
	switch value := value.(type) {
	case string:
		if r, found := visible.First(value, "\n\t"); found {
			e.Add(path, visible.Problem, r)
		}
	case []any:
		for i, item := range value {
			screenTexts(e, strictyaml.Index(path, i), item)
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			if r, found := visible.First(key, ""); found {
				e.Add(path, "has the property %q with the invisible character %U: rename it", key, r)
			}
			screenTexts(e, strictyaml.Key(path, key), value[key])
		}
	}
}

func screenRequired(e *Error, doc map[string]any) {
	properties, _ := doc["properties"].(map[string]any)
	required, _ := doc["required"].([]any)
	for i, r := range required {
		if name, ok := r.(string); ok && properties[name] == nil {
			known := make([]string, 0, len(properties))
			for p := range properties {
				known = append(known, p)
			}
			e.Add(strictyaml.Index("required", i), "%s", strictyaml.Unknown("property", name, known))
		}
	}
}

// screenKeywords looks at every object outside of the keywords that hold plain data.
func screenKeywords(e *Error, path string, value any) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			screenKeywords(e, strictyaml.Index(path, i), item)
		}
	case map[string]any:
		for key, v := range value {
			if text, ok := v.(string); ok {
				screenKeyword(e, path, key, text)
			}
			if key != "const" && key != "enum" && key != "default" && key != "examples" {
				screenKeywords(e, strictyaml.Key(path, key), v)
			}
		}
	}
}

func screenKeyword(e *Error, path, key, text string) {
	at := strictyaml.Key(path, key)
	switch key {
	case "$schema":
		if strings.TrimSuffix(text, "#") != draft2020 {
			e.Add(at, "must be %q or left out: hako knows JSON Schema draft 2020-12 only", draft2020)
		}
	case "$ref":
		if !strings.HasPrefix(text, "#") {
			e.Add(at, `must point into this schema: copy what it refers to into $defs and write "#/$defs/NAME"`)
		}
	case "$dynamicRef", "$recursiveRef":
		e.Add(at, `is not supported: use "$ref"`)
	case "$id":
		e.Add(at, `is not supported below the root: use "$anchor" or "#/$defs/NAME"`)
	}
}

func compile(doc map[string]any, patterns *patternCompiler) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns.compile)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noLoader refuses to load any schema but the one being compiled.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema", url)
}

// pattern is a compiled regular expression that knows its size, on which the time of a match depends.
type pattern struct {
	*regexp.Regexp
	size int
}

var errPatterns = errors.New("the patterns of the schema are too large together: use fewer or smaller ones")

// patternCompiler compiles the patterns of one schema. size is the number of their instructions. The compiler of
// schemas asks twice for each pattern: whether it is valid, and for its use.
type patternCompiler struct {
	compiled map[string]pattern
	size     int
}

func (c *patternCompiler) compile(text string) (jsonschema.Regexp, error) {
	if known, ok := c.compiled[text]; ok {
		return known, nil
	}
	if c.size > maxPatterns { // the rest is not looked at
		return nil, errPatterns
	}
	if len(text) > maxPatternLength {
		return nil, fmt.Errorf("a pattern has at most %d bytes", maxPatternLength)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w (RE2 syntax: no lookaround, no backreferences)", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPatternSize {
		return nil, errors.New("the pattern is too large: use fewer or smaller repetitions")
	}
	if c.size += len(program.Inst); c.size > maxPatterns {
		return nil, errPatterns
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	c.compiled[text] = pattern{compiled, len(program.Inst)}
	return c.compiled[text], nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

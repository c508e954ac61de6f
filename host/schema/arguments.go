package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/toolschema"
)

// Arguments validates the arguments of a tool like Validate, and returns them in the form that guests of all languages
// read in the same way:
//
//   - An integral number is written as an integer where a subschema has the type integer: 5.0 and 5e0 become 5. A
//     number of more than 20 digits, which is none of 64 bits, stays as it is.
//   - If the arguments match the schema only without them, members that are null are left out, except for those that
//     are required and those whose schema allows null. Many clients write null for what they do not give.
//
// Arguments that need neither are returned unchanged.
//
// It also refuses a property that no subschema of its object declares, if one declares it in another case:
// encoding/json takes it for the declared one, which neither the schema nor a policy has looked at then. This holds at
// every depth, also where the schema allows further properties.
func (s *Schema) Arguments(data []byte) (json.RawMessage, error) {
	shape, err := s.validateArguments(data)
	if err == nil && !shape.fractions || err != nil && !shape.nulls {
		return data, err
	}
	r := rewriter{tokens: jsonread.Reader{Data: data}, dropNulls: err != nil,
		refusesNull: map[*jsonschema.Schema]bool{}}
	rewritten, problem := r.document(s.compiled)
	if problem != nil {
		return nil, problem
	}
	if err != nil && r.dropped {
		_, err = s.validateArguments(rewritten)
	}
	if err != nil {
		return nil, err
	}
	return rewritten, nil
}

// validateArguments returns the shape of arguments that are valid JSON, also where they do not match the schema.
func (s *Schema) validateArguments(data []byte) (shape shape, err error) {
	err = s.validate(data, &shape, func(value any) error {
		if !s.spellings.mayDiffer(value) {
			return nil
		}
		c := caseChecker{spellings: &s.spellings}
		return c.check(value, []*jsonschema.Schema{s.compiled})
	})
	return shape, err
}

// rewriter writes a document again, without white space, in the form of Schema.Arguments. It has been decoded before,
// so it is valid JSON within the bounds.
type rewriter struct {
	tokens jsonread.Reader
	out    []byte
	// dropNulls leaves out members that are null. dropped reports whether there were any.
	dropNulls, dropped bool
	// names has the properties to rename. renamed reports whether there were any.
	names   toolschema.Names
	renamed bool
	// refusesNull has the results of refuses.
	refusesNull map[*jsonschema.Schema]bool
	// work counts looks at a subschema, up to maxSpellingWork.
	work int
}

func (r *rewriter) document(s *jsonschema.Schema) (json.RawMessage, error) {
	token, err := r.tokens.Next()
	if err == nil {
		err = r.value(token, []*jsonschema.Schema{s})
	}
	return r.out, err
}

// value writes the value that begins with token, to which schemas apply.
func (r *rewriter) value(token jsonread.Token, schemas []*jsonschema.Schema) error {
	switch token.Kind {
	case '{':
		return r.object(schemas)
	case '[':
		return r.array(withInPlace(schemas, &r.work))
	case '0':
		if slices.ContainsFunc(withInPlace(schemas, &r.work), wantsInteger) {
			r.out = append(r.out, integral(string(token.Raw))...)
			return nil
		}
	}
	r.out = append(r.out, token.Raw...)
	return nil
}

func (r *rewriter) object(schemas []*jsonschema.Schema) error {
	all, required := withInPlace(schemas, &r.work), requiredBy(schemas)
	r.out = append(r.out, '{')
	for first := true; ; {
		name, err := r.tokens.Next()
		if err != nil || name.Kind == '}' {
			r.out = append(r.out, '}')
			return err
		}
		value, err := r.tokens.Next()
		if err != nil {
			return err
		}
		text, raw := r.name(name, all)
		var applied []*jsonschema.Schema
		for _, s := range all {
			applied = append(applied, forProperty(s, text)...)
		}
		if r.work += len(all) + len(applied); r.work > maxSpellingWork {
			return errTooMuchWork
		}
		if value.Kind == 'n' && r.dropNulls && !required[text] && slices.ContainsFunc(applied, r.refuses) {
			r.dropped = true
			continue
		}
		if !first {
			r.out = append(r.out, ',')
		}
		first = false
		r.out = append(append(r.out, raw...), ':')
		if err := r.value(value, applied); err != nil {
			return err
		}
	}
}

// name returns the declared name of a member of an object to which schemas apply, and the name to write in JSON. It is
// another one only where a schema declares one of both: a name may be a key of the caller's own data.
func (r *rewriter) name(token jsonread.Token, schemas []*jsonschema.Schema) (declared string, raw []byte) {
	name := string(token.Text())
	to, ok := r.names[name]
	declares := func(name string) bool {
		return slices.ContainsFunc(schemas, func(s *jsonschema.Schema) bool { return s.Properties[name] != nil })
	}
	if !ok || declares(name) == declares(to) {
		return name, token.Raw
	}
	if declared = to; declares(name) {
		declared = name
	}
	r.renamed = true
	raw, _ = json.Marshal(to) // strings have no error
	return declared, raw
}

func (r *rewriter) array(schemas []*jsonschema.Schema) error {
	r.out = append(r.out, '[')
	for i := 0; ; i++ {
		item, err := r.tokens.Next()
		if err != nil || item.Kind == ']' {
			r.out = append(r.out, ']')
			return err
		}
		if i > 0 {
			r.out = append(r.out, ',')
		}
		var applied []*jsonschema.Schema
		for _, s := range schemas {
			applied = append(applied, forItem(s, i)...)
		}
		if r.work += len(schemas) + len(applied); r.work > maxSpellingWork {
			return errTooMuchWork
		}
		if err := r.value(item, applied); err != nil {
			return err
		}
	}
}

// refuses reports whether s refuses null. It does not ask the validator, whose steps could multiply.
func (r *rewriter) refuses(s *jsonschema.Schema) bool {
	if refuses, known := r.refusesNull[s]; known {
		return refuses
	}
	r.refusesNull[s] = false
	none := func(alternatives []*jsonschema.Schema) bool {
		return len(alternatives) > 0 && !slices.ContainsFunc(alternatives,
			func(t *jsonschema.Schema) bool { return !r.refuses(t) })
	}
	refuses := s.Types != nil && !slices.Contains(s.Types.ToStrings(), "null") ||
		s.Enum != nil && !slices.Contains(s.Enum.Values, nil) || s.Const != nil && *s.Const != nil ||
		s.Ref != nil && r.refuses(s.Ref) || slices.ContainsFunc(s.AllOf, r.refuses) || none(s.AnyOf) || none(s.OneOf)
	r.refusesNull[s] = refuses
	return refuses
}

// requiredBy returns the names of the properties that an object needs to match all schemas, whatever else it has.
func requiredBy(schemas []*jsonschema.Schema) map[string]bool {
	names, seen := map[string]bool{}, map[*jsonschema.Schema]bool{}
	var add func(s *jsonschema.Schema)
	add = func(s *jsonschema.Schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for _, name := range s.Required {
			names[name] = true
		}
		add(s.Ref)
		for _, t := range s.AllOf {
			add(t)
		}
	}
	for _, s := range schemas {
		add(s)
	}
	return names
}

func wantsInteger(s *jsonschema.Schema) bool {
	return s.Types != nil && slices.Contains(s.Types.ToStrings(), "integer")
}

// maxDigits bounds the integers that are written out: those of 64 bits have at most 20 digits.
const maxDigits = 20

// integral returns a number of JSON without fraction and exponent if it is an integer of at most maxDigits digits, else
// unchanged.
func integral(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		return number
	}
	mantissa, exponent := number, 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(number[i+1:]); err != nil {
			return number
		}
		mantissa = number[:i]
	}
	unsigned := strings.TrimPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	point := len(whole) + exponent // of the digits are before the point
	significant := strings.TrimLeft(digits, "0")
	length := point - (len(digits) - len(significant))
	switch {
	case significant == "":
		return "0"
	case point < len(digits), length > maxDigits:
		return number
	}
	return mantissa[:len(mantissa)-len(unsigned)] + significant + strings.Repeat("0", length-len(significant))
}

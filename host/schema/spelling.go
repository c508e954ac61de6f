package schema

import (
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hako-run/hako/internal/clip"
)

// maxSpellingWork bounds the steps of caseChecker: a step is a look at a subschema for a value or a name.
const maxSpellingWork = 10 * maxWork

// spellings are the names of the properties that a schema declares anywhere.
type spellings struct {
	// folded has foldCase of each name.
	folded map[string]string
	// declared has the names by foldCase of them.
	declared map[string][]string
}

func (s *spellings) add(name string) {
	if _, known := s.folded[name]; !known {
		folded := foldCase(name)
		s.folded[name] = folded
		s.declared[folded] = append(s.declared[folded], name)
	}
}

// of returns the declared names that are name in any case.
func (s *spellings) of(name string) []string {
	folded, known := s.folded[name]
	if !known {
		folded = foldCase(name)
	}
	return s.declared[folded]
}

// mayDiffer reports whether a property in value differs in case from a name that is declared anywhere. Almost no value
// has one, so caseChecker rarely has to look which names are declared at which place.
func (s *spellings) mayDiffer(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if declared := s.of(name); len(declared) > 1 || len(declared) == 1 && declared[0] != name ||
				s.mayDiffer(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, s.mayDiffer)
	}
	return false
}

// foldCase returns name with each letter in the first of its cases, as encoding/json compares names.
func foldCase(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// caseChecker finds properties that differ from a declared one of their object in nothing but case.
type caseChecker struct {
	*spellings
	// path leads to the current value.
	path []step
	work int
}

// check checks a value that schemas apply to. The error has the problems of one object.
func (c *caseChecker) check(value any, schemas []*jsonschema.Schema) error {
	schemas = withInPlace(schemas, &c.work)
	switch value := value.(type) {
	case map[string]any:
		if err := c.checkNames(value, schemas); err != nil {
			return err
		}
		for _, name := range sortedKeys(value) {
			err := c.checkMember(step{name, -1}, value[name], schemas,
				func(s *jsonschema.Schema) []*jsonschema.Schema { return forProperty(s, name) })
			if err != nil {
				return err
			}
		}
	case []any:
		for i, item := range value {
			err := c.checkMember(step{"", i}, item, schemas,
				func(s *jsonschema.Schema) []*jsonschema.Schema { return forItem(s, i) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// withInPlace returns schemas and all that apply to the same value as one of them. It adds to work the number of those
// that it looked at.
func withInPlace(schemas []*jsonschema.Schema, work *int) (all []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	var add func([]*jsonschema.Schema)
	add = func(schemas []*jsonschema.Schema) {
		*work += len(schemas)
		for _, s := range schemas {
			if !seen[s] {
				seen[s] = true
				all = append(all, s)
				add(inPlace(s))
			}
		}
	}
	add(schemas)
	return all
}

func (c *caseChecker) checkNames(object map[string]any, schemas []*jsonschema.Schema) error {
	declares := func(name string) bool {
		c.work += len(schemas)
		return slices.ContainsFunc(schemas, func(s *jsonschema.Schema) bool { return s.Properties[name] != nil })
	}
	var path string // the same for all problems; it may be long
	var e Error
	for _, name := range sortedKeys(object) {
		declared := c.of(name)
		if len(declared) == 0 || declares(name) {
			continue
		}
		if i := slices.IndexFunc(declared, declares); i >= 0 {
			if e.Problems == nil {
				path = clip.Runes(pathOf(c.path), maxPath)
			}
			e.Add(path, "unknown property %q: did you mean %q?", name, declared[i])
		}
		if c.work > maxSpellingWork {
			return errTooMuchWork
		}
	}
	return e.Err()
}

// checkMember checks a member of the current value, to which those schemas apply that members returns.
func (c *caseChecker) checkMember(at step, value any, schemas []*jsonschema.Schema,
	members func(*jsonschema.Schema) []*jsonschema.Schema) error {
	var applied []*jsonschema.Schema
	for _, s := range schemas {
		applied = append(applied, members(s)...)
	}
	if c.work += len(schemas); c.work > maxSpellingWork {
		return errTooMuchWork
	}
	if len(applied) == 0 {
		return nil
	}
	c.path = append(c.path, at)
	err := c.check(value, applied)
	c.path = c.path[:len(c.path)-1]
	return err
}

// forProperty returns the subschemas of s that apply to the property called name.
func forProperty(s *jsonschema.Schema, name string) (list []*jsonschema.Schema) {
	if t := s.Properties[name]; t != nil {
		list = append(list, t)
	}
	for p, t := range s.PatternProperties {
		if p.MatchString(name) {
			list = append(list, t)
		}
	}
	if t, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && len(list) == 0 {
		list = append(list, t)
	}
	if s.UnevaluatedProperties != nil {
		list = append(list, s.UnevaluatedProperties)
	}
	return list
}

// forItem returns the subschemas of s that apply to item i of an array.
func forItem(s *jsonschema.Schema, i int) (list []*jsonschema.Schema) {
	if i < len(s.PrefixItems) {
		list = append(list, s.PrefixItems[i])
	} else if s.Items2020 != nil {
		list = append(list, s.Items2020)
	}
	for _, t := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
		if t != nil {
			list = append(list, t)
		}
	}
	return list
}

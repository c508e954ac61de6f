package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/toolschema"
)

// ArgumentError means that a call has an argument that the toolset fixes or hides.
type ArgumentError struct{ Name, Argument string }

func (e *ArgumentError) Error() string {
	if e.Name == e.Argument {
		return fmt.Sprintf("the caller may not set %q, because the toolset fixes or hides it: omit it", e.Name)
	}
	return fmt.Sprintf("%q could be read as %q, which the toolset fixes or hides: omit it", e.Name, e.Argument)
}

// form changes the arguments of a tool as a set offers it.
type form struct {
	// tool is the name in the catalog.
	tool string
	// schema is the listed input schema without the taken arguments; nil if none is taken.
	schema json.RawMessage
	// taken are the arguments that callers cannot give, sorted. fixed has the members of those with a value.
	taken []string
	fixed []byte
	// known are all arguments in the tool's schema.
	known map[string]bool
}

func newForm(entry *Tool, tool *catalog.Tool) (*form, error) {
	f := &form{tool: tool.Name, taken: slices.Sorted(maps.Keys(entry.Fix))}
	for i, name := range f.taken {
		if i > 0 {
			f.fixed = append(f.fixed, ',')
		}
		f.fixed = append(appendName(f.fixed, name), entry.Fix[name]...)
	}
	f.taken = append(f.taken, entry.Hide...)
	if len(f.taken) == 0 {
		return f, nil
	}
	slices.Sort(f.taken)
	if err := f.reduce(toolschema.Flattened(tool.Spec.InputSchema), entry.Hide); err != nil {
		return nil, err
	}
	f.schema = toolschema.ListedAs(tool.Spec.InputSchema, f.schema)
	return f, nil
}

// reduce makes the schema without the taken arguments. No composition is at the top of the whole one.
func (f *form) reduce(whole json.RawMessage, hidden []string) error {
	top, err := membersOf(whole)
	if err != nil {
		return fmt.Errorf("its input schema cannot be read: %w", err)
	}
	f.known = map[string]bool{}
	isTaken := func(name string) bool { return slices.Contains(f.taken, name) }
	for i, m := range top {
		switch m.name {
		case "properties":
			properties, err := membersOf(m.value)
			if err != nil {
				return fmt.Errorf("its input schema cannot be read: %w", err)
			}
			for _, p := range properties {
				f.known[p.name] = true
			}
			top[i].value = object(slices.DeleteFunc(properties, func(p member) bool { return isTaken(p.name) }))
		case "required":
			var required []string
			if err := json.Unmarshal(m.value, &required); err != nil {
				return fmt.Errorf("its input schema cannot be read: %w", err)
			}
			for _, name := range hidden {
				if slices.Contains(required, name) {
					return fmt.Errorf("it requires the argument %s, which the toolset hides: fix it instead", name)
				}
			}
			rest := slices.DeleteFunc(required, isTaken)
			if rest == nil {
				rest = []string{}
			}
			if top[i].value, err = json.Marshal(rest); err != nil {
				return err
			}
		}
	}
	for _, name := range f.taken {
		if !f.known[name] {
			return fmt.Errorf("it has no argument %s, which the toolset fixes or hides", name)
		}
	}
	f.schema = object(top)
	return nil
}

// Arguments returns the arguments for the tool in the catalog of a call of the tool with this offered name: those that
// the caller gave, and the fixed ones. The error is an *ArgumentError if the caller gave one that is taken, also if its
// name differs in case only, because some guests do not distinguish such names. Arguments that are not a JSON object
// are returned unchanged.
func (v *View) Arguments(offered string, given json.RawMessage) (json.RawMessage, error) {
	f := v.forms[offered]
	if f == nil || len(f.taken) == 0 {
		return given, nil
	}
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	members, err := membersOf(given)
	if err != nil {
		return given, nil // the validation says what is wrong
	}
	for _, m := range members {
		for _, taken := range f.taken {
			if m.name == taken || strings.EqualFold(m.name, taken) && !f.known[m.name] {
				return nil, &ArgumentError{m.name, taken}
			}
		}
	}
	if len(f.fixed) == 0 {
		return given, nil
	}
	start := bytes.IndexByte(given, '{') + 1
	whole := append([]byte{'{'}, f.fixed...)
	if len(members) > 0 {
		whole = append(whole, ',')
	}
	return append(whole, given[start:]...), nil
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("it is not a JSON object")

// membersOf returns the members of an object in their order, also repeated ones.
func membersOf(data json.RawMessage) (list []member, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errNoObject
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errNoObject
		}
		m := member{name: name}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, errNoObject
		}
		list = append(list, m)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := decoder.Token(); err != io.EOF { // white space of Unicode is none of JSON's
		return nil, errNoObject
	}
	return list, nil
}

func object(members []member) json.RawMessage {
	data := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(appendName(data, m.name), m.value...)
	}
	return append(data, '}')
}

// appendName appends the name of a member and a colon.
func appendName(data []byte, name string) []byte {
	quoted, _ := json.Marshal(name) // strings have no error
	return append(append(data, quoted...), ':')
}

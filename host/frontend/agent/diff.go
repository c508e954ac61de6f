package agent

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Text is the change in a line: "+ NAME", "- NAME", or "~ NAME" with what is another, such as "~ NAME (description;
// arguments: +new -old ~other)".
func (c Change) Text() string {
	switch {
	case c.Old == nil:
		return "+ " + c.New.Name
	case c.New == nil:
		return "- " + c.Old.Name
	}
	var parts []string
	if c.Old.Description != c.New.Description {
		parts = append(parts, "description")
	}
	if !(&Definition{Name: c.New.Name, Description: c.New.Description, InputSchema: c.Old.InputSchema}).sameAs(c.New) {
		parts = append(parts, "arguments"+argumentsText(schemaOf(c.Old), schemaOf(c.New)))
	}
	return fmt.Sprintf("~ %s (%s)", c.New.Name, strings.Join(parts, "; "))
}

// argumentsText names the arguments that two schemas differ in.
func argumentsText(old, next map[string]any) string {
	before, _ := old["properties"].(map[string]any)
	after, _ := next["properties"].(map[string]any)
	var names []string
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case !had:
			names = append(names, "+"+name)
		case !has:
			names = append(names, "-"+name)
		case !reflect.DeepEqual(was, is) || required(old, name) != required(next, name):
			names = append(names, "~"+name)
		}
	}
	if names == nil {
		return "" // what the schema says of all of them
	}
	return ": " + strings.Join(some(names), " ")
}

func required(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	return slices.Contains(list, any(name))
}

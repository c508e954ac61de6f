package manifest

import (
	"encoding/json"
	"slices"

	"github.com/hako-run/hako/internal/strictyaml"
)

// Replaces describes how to read the value that a tool's argument replaces, so that people who approve a call see the
// difference. It is read with a read-only tool of the same plugin, on behalf of the caller.
type Replaces struct {
	// Argument replaces the value.
	Argument string
	// Tool returns the present value as the member Result of its structured content. If that has a member More, Result
	// is only a part.
	Tool, Result, More string
	// Arguments are the arguments of Tool, and those of this tool from which their values come.
	Arguments map[string]string
	// When has the values of arguments with which the tool replaces anything: all must be equal. Empty means always.
	When map[string]json.RawMessage
}

func (r *Replaces) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"argument": strictyaml.String(&r.Argument),
		"tool":     strictyaml.String(&r.Tool),
		"result":   strictyaml.String(&r.Result),
		"more":     strictyaml.String(&r.More),
		"arguments": func(v strictyaml.Value) {
			r.Arguments = map[string]string{}
			v.Map(func(name string, v strictyaml.Value) { r.Arguments[name], _ = v.Text() })
		},
		"when": func(v strictyaml.Value) {
			r.When = map[string]json.RawMessage{}
			v.Map(func(name string, v strictyaml.Value) { r.When[name] = v.JSON() })
		},
	})
}

// replaces checks that the names are those of the tool's arguments and of a tool that only reads.
func (v *validation) replaces(path string, t *Tool, tools []Tool) {
	r := t.Replaces
	i := slices.IndexFunc(tools, func(other Tool) bool { return other.Name == r.Tool })
	if i < 0 || !isTrue(tools[i].Annotations.ReadOnlyHint) {
		v.Add(path+".tool", "must be a tool of this plugin with readOnlyHint: true")
		return
	}
	member := func(path, name string, schema json.RawMessage, where string) {
		if !slices.Contains(properties(schema), name) {
			v.Add(path, "must be one of the properties of %s", where)
		}
	}
	member(path+".argument", r.Argument, t.InputSchema, "inputSchema")
	member(path+".result", r.Result, tools[i].OutputSchema, r.Tool+"'s outputSchema")
	if r.More != "" {
		member(path+".more", r.More, tools[i].OutputSchema, r.Tool+"'s outputSchema")
	}
	for _, name := range keys(r.Arguments) {
		at := strictyaml.Key(path+".arguments", name)
		member(at, name, tools[i].InputSchema, r.Tool+"'s inputSchema")
		member(at, r.Arguments[name], t.InputSchema, "inputSchema")
	}
	for _, name := range keys(r.When) {
		member(strictyaml.Key(path+".when", name), name, t.InputSchema, "inputSchema")
	}
}

// properties are the names of the properties that a schema declares at its top.
func properties(schema json.RawMessage) []string {
	var top struct{ Properties map[string]json.RawMessage }
	if json.Unmarshal(schema, &top) != nil {
		return nil // reported as a problem of the schema
	}
	return keys(top.Properties)
}

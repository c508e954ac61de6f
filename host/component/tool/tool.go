// Package tool offers components as plugins. The exported functions of a component become tools: New derives their
// names and JSON Schemas from WIT, and its Adapter converts between JSON and values of WIT. A component that exports
// the interfaces of wasmcp instead lists its tools, resources and prompts itself.
//
// docs/components.md has the rules. Names and values are those of wassette, so that its callers need no change.
package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
)

// Adapter implements sandbox.Adapter for one component. It is safe for concurrent use.
type Adapter struct {
	manifest *manifest.Manifest
	// functions are the tools' functions by the names of the tools, in order.
	functions []Function
	// listed are the functions of wasmcp that the component exports, by their names in WIT.
	listed map[string]*Function
	// unchecked reports whether the component may lack the code of functions: see Handlers.
	unchecked bool
}

// New returns an Adapter for a component with a manifest. The manifest's tools select exported functions, by their
// derived names or by Tool.Export; without any, all functions that can be tools are. It fails if the manifest selects
// what the component does not export or what cannot be a tool, if two tools have one name, and if there is no tool.
func New(c *component.Component, m *manifest.Manifest) (*Adapter, error) {
	a := &Adapter{manifest: m}
	var err error
	if a.listed, err = listedFunctions(c); err != nil || a.Lists() {
		return a, err
	}
	functions := Functions(c)
	a.unchecked = isUnchecked(functions)
	if len(m.Tools) > 0 {
		a.functions, err = selected(functions, m.Tools)
		return a, err
	}
	a.functions, err = all(functions)
	return a, err
}

// selected returns the functions of the manifest's tools, under their names there.
func selected(functions []Function, tools []manifest.Tool) ([]Function, error) {
	list := make([]Function, len(tools))
	for i := range tools {
		t := &tools[i]
		at := slices.IndexFunc(functions, func(f Function) bool {
			return f.Export == t.Export || t.Export == "" && f.Name == t.Name
		})
		if at < 0 {
			return nil, fmt.Errorf("tools[%d]: the component exports no function %s: it exports %s", i,
				exportOrName(t), exports(functions))
		}
		f := functions[at]
		f.Name = t.Name
		if f.Reason = whyNoTool(interfaceOf(f.Export), &f); f.Reason != "" {
			return nil, fmt.Errorf("tools[%d]: %s cannot be a tool: %s", i, f.Export, f.Reason)
		}
		list[i] = f
	}
	return list, nil
}

func exportOrName(t *manifest.Tool) string {
	if t.Export != "" {
		return t.Export
	}
	return "for the name " + t.Name
}

func interfaceOf(export string) string {
	if name, _, ok := strings.Cut(export, "#"); ok {
		return name
	}
	return ""
}

// exports lists the functions that can be tools, in an error.
func exports(functions []Function) string {
	const most = 20
	names := make([]string, 0, most+1)
	for i := range functions {
		if functions[i].Reason != "" {
			continue // such as a step of the toolchain
		}
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, functions[i].Export)
	}
	if len(names) == 0 {
		return "none that can be a tool"
	}
	return strings.Join(names, ", ")
}

// all returns the functions that can be tools.
func all(functions []Function) ([]Function, error) {
	var tools []Function
	var reasons []string
	byName := map[string]*Function{}
	for i := range functions {
		f := &functions[i]
		if f.Reason != "" {
			reasons = append(reasons, f.Export+": "+f.Reason)
			continue
		}
		if other := byName[f.Name]; other != nil {
			return nil, fmt.Errorf(
				"the exports %s and %s both become the tool %s: name them in the manifest (tools: name, "+
					"export)", other.Export, f.Export, f.Name)
		}
		byName[f.Name] = f
		tools = append(tools, *f)
	}
	switch {
	case len(tools) > 0:
		return tools, nil
	case len(reasons) > 0:
		return nil, fmt.Errorf("the component exports no function that can be a tool (%s)", strings.Join(reasons, "; "))
	}
	return nil, errors.New("the component exports no function: export the functions that are to be tools in its world")
}

// Equip sets the adapter of spec.
func (a *Adapter) Equip(spec *sandbox.Spec) { spec.Adapter = a }

// Complete returns the manifest with all tools: those of the manifest with what it does not say derived from their
// functions. For an Adapter that Lists, listing is the result of List; omitted names what it lists that cannot be
// offered. If the result breaks a rule of manifests, the error wraps a *manifest.Error.
func (a *Adapter) Complete(listing []byte) (complete *manifest.Manifest, omitted []string, err error) {
	if a.Lists() {
		return a.completeListed(listing)
	}
	if a.isComplete() {
		return a.manifest, nil, nil
	}
	m := *a.manifest
	m.Tools = make([]manifest.Tool, len(a.functions))
	for i := range a.functions {
		t := manifest.Tool{Name: a.functions[i].Name}
		if len(a.manifest.Tools) > 0 {
			t = a.manifest.Tools[i]
		}
		a.functions[i].describe(&t)
		m.Tools[i] = t
	}
	if err := m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("the component's functions cannot be offered: %w", err)
	}
	return &m, nil, nil
}

// isComplete reports whether the manifest came from Complete: validating the schemas of many tools again takes long.
func (a *Adapter) isComplete() bool {
	for i := range a.manifest.Tools {
		t := &a.manifest.Tools[i]
		if t.Input() == nil || len(t.Description) == 0 || t.OutputSchema == nil && a.functions[i].output != nil {
			return false
		}
	}
	return len(a.manifest.Tools) > 0
}

// describe derives what a tool does not say from its function.
func (f *Function) describe(t *manifest.Tool) {
	if len(t.Description) == 0 {
		t.Description = manifest.Text{"en": cmp.Or(f.docs, f.Export+": "+f.Type.String())}
	}
	t.Export = f.Export
	if t.InputSchema == nil {
		t.InputSchema = f.input
	}
	if t.OutputSchema == nil {
		t.OutputSchema = f.output
	}
}

package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
)

// Function is an exported function of a component.
type Function struct {
	// Export is its name in the component: "name", or "interface#name".
	Export string
	// Name is the name of its tool, if the manifest gives no other.
	Name string
	Type *component.Func
	// Reason explains why the function is no tool. It is empty for a tool.
	Reason string

	docs          string          // its comment in WIT, if the component has it
	input, output json.RawMessage // schemas; output is nil for none
}

// Functions returns the exported functions of a component, in order.
func Functions(c *component.Component) []Function {
	var functions []Function
	docs := readDocs(c.Docs)
	for i := range c.Exports {
		export := &c.Exports[i]
		switch export.Sort {
		case component.SortFunc:
			functions = append(functions, newFunction("", export))
		case component.SortInstance:
			for j := range export.Instance.Exports {
				if f := &export.Instance.Exports[j]; f.Sort == component.SortFunc {
					functions = append(functions, newFunction(export.Name, f))
				}
			}
		}
	}
	for i := range functions {
		functions[i].docs = docs.of(functions[i].Export)
	}
	return functions
}

// newFunction returns a function of an interface, or of the component itself if that is empty.
func newFunction(iface string, f *component.Extern) Function {
	function := Function{Export: f.Name, Name: toolName(iface, f.Name), Type: f.Func}
	if iface != "" {
		function.Export = iface + "#" + f.Name
	}
	function.Reason = whyNoTool(iface, &function)
	return function
}

// maxName is the longest name of a tool (manifest.Tool).
const maxName = 64

// whyNoTool returns the reason why a function is no tool, or makes its schemas.
func whyNoTool(iface string, f *Function) string {
	switch {
	case strings.HasPrefix(iface, "wasi:"):
		return "the interface is one of WASI"
	case isListed(iface):
		return "hako calls it to list and to run the tools that the component implements"
	case isBuildStep(f):
		return "the toolchain calls it while it builds the component"
	case f.Type.Async:
		return component.ErrAsync.Error()
	case strings.HasPrefix(f.Export[strings.Index(f.Export, "#")+1:], "["):
		return "it belongs to a resource, which callers cannot hold"
	}
	if len(f.Name) > maxName {
		return fmt.Sprintf("its name %s has %d characters, and a tool's at most %d: give it a name in the manifest "+
			"(tools: name, export)", f.Name, len(f.Name), maxName)
	}
	var err error
	if f.input, err = inputSchema(f.Type); err == nil {
		f.output, err = outputSchema(f.Type)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// buildSteps are the parameters of functions that toolchains call while they build a component, and leave in it:
// componentize-qjs and componentize-py.
var buildSteps = map[string][]string{
	"init":         {"shim", "script", "entry-path", "disable-gc"},
	"exports#init": {"app-name", "symbols", "stub-wasi"},
}

func isBuildStep(f *Function) bool {
	names, ok := buildSteps[f.Export]
	return ok && slices.EqualFunc(f.Type.Params, names, func(p component.Field, name string) bool {
		return p.Name == name
	})
}

// toolName returns the name of a function's tool, as wassette makes it: the interface with its package and version, if
// any, and the function, in lower case, with "_" between them and for what a name cannot have.
func toolName(iface, function string) string {
	if iface != "" {
		function = iface + "_" + function
	}
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(function))
}

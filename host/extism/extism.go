// Package extism runs plugins with the Extism ABI in the sandbox, under the same grants and limits as others. New
// returns an Adapter for a module, Adapter.Equip adds it to a sandbox.Spec.
//
// Two families of exports are supported: "describe" and "call" (hyper-mcp v1, mcp.run servlets), and "list_tools",
// "call_tool" and their siblings for prompts, resources and completion (hyper-mcp v2). The manifest of such a plugin
// has permissions but no tools: List gets them from the guest once, and mcpjson.Complete adds them to the manifest.
//
// The Extism host functions are implemented here instead of using those of the Extism SDK (see RATIONALE.md).
// docs/extism.md describes them.
package extism

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// Exports of the two families.
const (
	exportDescribe      = "describe"
	exportCall          = "call"
	exportListTools     = "list_tools"
	exportCallTool      = "call_tool"
	exportListPrompts   = "list_prompts"
	exportGetPrompt     = "get_prompt"
	exportListResources = "list_resources"
	exportListTemplates = "list_resource_templates"
	exportReadResource  = "read_resource"
	exportComplete      = "complete"
)

// Options configures an Adapter. A nil *Options means all defaults.
type Options struct {
	// Config is the plugin's configuration, a JSON object. Guests see each value as a string: strings as they are,
	// others as JSON.
	Config []byte
	// Tools are the tools of the manifest, with the functions that they call. Without any, the guest lists its tools.
	Tools []manifest.Tool
	// Placeholders are the configuration keys whose values are placeholders for credentials.
	Placeholders []string
	// HTTP sends the guest's requests. Nil means that http_request fails as not granted.
	HTTP *httpbroker.Broker
}

// Adapter implements sandbox.Adapter for one plugin. It is safe for concurrent use.
type Adapter struct {
	exports map[string]bool
	// functions are the tools of the manifest, by name.
	functions map[string]manifest.Tool
	config    map[string]string
	// placeholders are keys that are not in config.
	placeholders []string
	http         *httpbroker.Broker
}

var _ sandbox.Adapter = (*Adapter)(nil)

// New returns an Adapter for the module. It fails if the module has no export that hako can call, if such an export has
// parameters or a result other than an i32, if it has no memory, or if it imports an unknown host function.
func New(m *wasmfile.Module, o *Options) (*Adapter, error) {
	if o == nil {
		o = &Options{}
	}
	a := &Adapter{http: o.HTTP, placeholders: o.Placeholders, functions: map[string]manifest.Tool{}}
	for _, t := range o.Tools {
		a.functions[t.Name] = t
	}
	var err error
	if a.exports, err = a.findExports(m); err != nil {
		return nil, err
	}
	if m.Memory == nil {
		return nil, errors.New("the module has no memory")
	}
	if err := manifest.CheckImports(m, manifest.Permissions{}); err != nil {
		return nil, err
	}
	a.config, err = manifest.ConfigTexts(o.Config)
	return a, err
}

// Check reports why a plugin of the Extism ABI cannot be called, as far as its module and its manifest show.
func Check(m *wasmfile.Module, tools []manifest.Tool) error {
	_, err := New(m, &Options{Tools: tools})
	return err
}

// Equip sets the adapter and the import modules of spec.
func (a *Adapter) Equip(spec *sandbox.Spec) {
	spec.Adapter, spec.Modules = a, a.modules()
}

// v1 reports whether the plugin is of the first family. Like in other hosts, a plugin with both families counts as the
// first.
func (a *Adapter) v1() bool { return a.exports[exportDescribe] && a.exports[exportCall] }

// findExports returns the exports that hako calls.
func (a *Adapter) findExports(m *wasmfile.Module) (map[string]bool, error) {
	known := []string{
		exportDescribe, exportCall, exportListTools, exportCallTool, exportListPrompts, exportGetPrompt,
		exportListResources, exportListTemplates, exportReadResource, exportComplete,
	}
	if len(a.functions) > 0 {
		known = nil
	}
	for _, t := range a.functions {
		known = append(known, t.Export)
	}
	found := map[string]bool{}
	for _, e := range m.Exports {
		if e.Kind != wasmfile.KindFunc || !slices.Contains(known, e.Name) {
			continue
		}
		if t := e.Type.String(); t != "() -> (i32)" && t != "() -> ()" {
			return nil, fmt.Errorf("the module exports the function %s %s; the Extism ABI wants () -> (i32)", e.Name, t)
		}
		found[e.Name] = true
	}
	for _, t := range a.functions {
		if !found[t.Export] {
			return nil, fmt.Errorf("tool %s: the module does not export the function %s: it exports %s", t.Name, t.Export,
				functionsOf(m))
		}
	}
	if len(a.functions) > 0 {
		return found, nil
	}
	v1 := found[exportDescribe] && found[exportCall]
	if !v1 && !found[exportListTools] && !found[exportListPrompts] && !found[exportListResources] &&
		!found[exportListTemplates] {
		return nil, errors.New("the module exports neither describe and call nor list_tools or another list: " +
			"name the functions that it has as tools in its manifest (docs/extism.md#functions)")
	}
	return found, nil
}

// functionsOf lists the functions that a manifest can name as tools: those of the module with the type that the ABI wants,
// without what toolchains export for themselves.
func functionsOf(m *wasmfile.Module) string {
	const most = 20
	var names []string
	for _, e := range m.Exports {
		if e.Kind != wasmfile.KindFunc || strings.HasPrefix(e.Name, "_") || e.Name == "hs_init" ||
			e.Type.String() != "() -> (i32)" {
			continue
		}
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, clip.Runes(visible.Line(e.Name), maxExport))
	}
	if len(names) == 0 {
		return "none that can be one"
	}
	return strings.Join(names, ", ")
}

// maxExport bounds the name of an export in an error, in characters.
const maxExport = 100

func (a *Adapter) modules() []broker.Module {
	return []broker.Module{
		{Name: manifest.ExtismEnv, Functions: slices.Concat(a.memoryFunctions(), a.stateFunctions(), a.logFunctions(),
			a.httpFunctions())},
		{Name: manifest.ExtismUser, Functions: a.userFunctions()},
	}
}

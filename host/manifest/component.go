package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/component"
	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/internal/strictyaml"
)

// readComponent fills in what a component has: its functions as imports and exports, and hako's custom sections.
func (m *moduleReader) readComponent(wasm []byte) (err error) {
	if m.module.Component, err = component.Decode(wasm); err != nil {
		return fmt.Errorf("malformed component: %w", err)
	}
	if err := eachSection(wasm, m.custom); err != nil {
		return err
	}
	for _, e := range m.module.Component.Imports {
		m.module.Imports = append(m.module.Imports, componentImports(e)...)
	}
	for _, e := range m.module.Component.Exports {
		m.module.Exports = append(m.module.Exports, componentExports(e)...)
	}
	return checkModules(m.module.Component)
}

// componentImports are the functions of an import: those of an instance under its name, others under their own. An
// instance of types only has none.
func componentImports(e component.Extern) []Import {
	if e.Instance == nil {
		if e.Type != nil {
			return nil
		}
		return []Import{{Name: e.Name, Kind: KindFunc}}
	}
	var functions []Import
	for _, f := range e.Instance.Exports {
		if f.Func != nil {
			functions = append(functions, Import{Module: e.Name, Name: f.Name, Kind: KindFunc})
		}
	}
	return functions
}

// componentExports are the functions of an export, those of an instance as "instance#function".
func componentExports(e component.Extern) []Export {
	if e.Func != nil {
		return []Export{{Name: e.Name, Kind: KindFunc}}
	}
	var functions []Export
	if e.Instance != nil {
		for _, f := range e.Instance.Exports {
			if f.Func != nil {
				functions = append(functions, Export{Name: e.Name + "#" + f.Name, Kind: KindFunc})
			}
		}
	}
	return functions
}

// checkModules checks that hako can run each core module of a component.
func checkModules(c *component.Component) error {
	for _, d := range c.Definitions {
		var err error
		switch d := d.(type) {
		case *component.Module:
			if err = rewrite.Check(d.Code); err != nil {
				err = fmt.Errorf("core module %d of the component cannot be used: %w", d.ID, err)
			}
		case *component.Nested:
			err = checkModules(d.Component)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errAsync is the error of a component with functions of the asynchronous ABI.
var errAsync = errors.New(
	"the component has asynchronous functions of WASI 0.3, and hako runs components of WASI 0.2: " +
		"build it for WASI 0.2 (componentize-qjs: with --sync)")

// isAsync reports whether a component lifts a function with the asynchronous ABI.
func isAsync(c *component.Component) bool {
	return slices.ContainsFunc(c.Definitions, func(d component.Definition) bool {
		switch d := d.(type) {
		case *component.Lift:
			return d.Options.Async || d.Type.Async
		case *component.Nested:
			return isAsync(d.Component)
		}
		return false
	})
}

// witPackage is a package of WIT whose interfaces components may import.
type witPackage struct {
	name       string
	interfaces string
	permission string // empty: every component may import it
	asked      func(Permissions) bool
}

// witPackages are those that hako offers, in the versions 0.2.x and their drafts. Toolchains link wasi:filesystem,
// wasi:http and wasi:sockets into every component, so they need no permission: without one there are no directories,
// and each request or socket is refused. componentize-py links wasmcp's interfaces of the server into every component
// that has one of its types, and hako has no functions for them: calling one is an error.
var witPackages = []witPackage{
	{name: "wasi:cli", interfaces: "environment exit stdin stdout stderr terminal-input terminal-output terminal-stdin terminal-stdout terminal-stderr"},
	{name: "wasi:clocks", interfaces: "monotonic-clock wall-clock timezone"},
	{name: "wasi:config", interfaces: "store runtime"},
	{name: "wasi:filesystem", interfaces: "types preopens"},
	{name: "wasi:http", interfaces: "types outgoing-handler"},
	{name: "wasi:io", interfaces: "error poll streams"},
	{name: "wasi:keyvalue", interfaces: "store atomics batch", permission: "sql", asked: asksSQL},
	{name: "wasi:logging", interfaces: "logging"},
	{name: "wasi:random", interfaces: "random insecure insecure-seed"},
	{name: "wasi:sockets",
		interfaces: "instance-network ip-name-lookup network tcp tcp-create-socket udp udp-create-socket"},
	{name: "wasmcp:mcp-v20251125", interfaces: "server-auth server-handler server-io"},
	{name: "hako:exec", interfaces: "commands", permission: "exec",
		asked: func(p Permissions) bool { return p.Exec != nil }},
	{name: "hako:sql", interfaces: "database", permission: "sql", asked: asksSQL},
	{name: "hako:tool", interfaces: "log progress"},
	{name: "hako:tools", interfaces: "calls", permission: "tools", asked: asksTools},
}

func asksSQL(p Permissions) bool { return p.SQL != nil }

func asksTools(p Permissions) bool { return p.Tools != nil }

// checkComponentImport checks that hako has the interface that a component imports a function of.
func checkComponentImport(i Import, p Permissions) error {
	if i.Module == "" {
		return fmt.Errorf(
			"the component imports %q, which is in no interface: hako offers the interfaces of WASI 0.2; "+
				"compose the component with one that exports it (wac plug)", i.Name)
	}
	path, version, _ := strings.Cut(i.Module, "@")
	name, inside, _ := strings.Cut(path, "/")
	for _, known := range witPackages {
		if known.name != name {
			continue
		}
		interfaces := strings.Fields(known.interfaces)
		switch {
		case strings.HasPrefix(name, "wasi:") && name != "wasi:logging" && version != "" &&
			!strings.HasPrefix(version, "0.2."):
			return fmt.Errorf("the component imports %q, and hako runs components of WASI 0.2: build it for WASI 0.2 (Rust: the target wasm32-wasip2; componentize-qjs: with --sync)",
				i.Module)
		case !slices.Contains(interfaces, inside):
			return fmt.Errorf("the component imports %q: %s", i.Module,
				strictyaml.Unknown("interface of "+name, inside, interfaces))
		case known.permission != "" && !known.asked(p):
			return fmt.Errorf("the component imports %q, but the manifest does not ask for the permission %q that links it: add it under permissions, or remove what uses it",
				i.Module, known.permission)
		}
		return nil
	}
	names := make([]string, len(witPackages))
	for j, known := range witPackages {
		names[j] = known.name
	}
	return fmt.Errorf("the component imports %q: %s; compose the component with one that exports it (wac plug)",
		i.Module,
		strictyaml.Unknown("package", name, names))
}

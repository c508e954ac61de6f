package wasmfile

import (
	"fmt"
	"slices"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/rewrite"
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
	for _, m := range c.CoreModules() {
		if err := rewrite.Check(m.Code); err != nil {
			return fmt.Errorf("core module %d of the component cannot be used: %w", m.ID, err)
		}
	}
	return nil
}

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

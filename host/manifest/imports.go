package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/abi"
)

// Import modules of plugins that no permission links.
const (
	wasiModule = "wasi_snapshot_preview1"
	// ExtismEnv and ExtismUser are the modules of the Extism ABI. All its guests get the same functions, which refuse
	// what the plugin has no permission for.
	ExtismEnv  = "extism:host/env"
	ExtismUser = "extism:host/user"
)

// linked ties a permission to the imports that it links.
type linked struct {
	permission string
	asked      func(*Permissions) bool
	// module is the import module of core modules.
	module string
	// interfaces are those of components.
	interfaces []string
	// refuses is set if a component may import the interfaces without the permission. Each request is refused then.
	refuses bool
}

// permissionImports has all permissions but that for files, which come as WASI preopens.
var permissionImports = []linked{
	{permission: "http", asked: func(p *Permissions) bool { return len(p.HTTP) > 0 },
		module: abi.HTTPModule, interfaces: []string{"wasi:http/outgoing-handler"}, refuses: true},
	{permission: "sql", asked: func(p *Permissions) bool { return p.SQL != nil },
		module: abi.SQLModule, interfaces: []string{"hako:sql/database", "wasi:keyvalue/store", "wasi:keyvalue/atomics",
			"wasi:keyvalue/batch"}},
	{permission: "exec", asked: func(p *Permissions) bool { return p.Exec != nil },
		module: abi.ExecModule, interfaces: []string{"hako:exec/commands"}},
	{permission: "tools", asked: func(p *Permissions) bool { return p.Tools != nil },
		module: abi.ToolsModule, interfaces: []string{"hako:tools/calls"}},
}

// coreModules are the import modules of ABI 1.
func coreModules() []string {
	modules := []string{abi.CoreModule, wasiModule}
	for _, l := range permissionImports {
		modules = append(modules, l.module)
	}
	return modules
}

// CheckImports checks that the module imports nothing but functions of the modules that permissions link, with their
// types, and a component nothing but interfaces that hako has. All imports that are not so are in the error.
func CheckImports(m *wasmfile.Module, p Permissions) error {
	check := func(i wasmfile.Import) error { return checkCoreImport(i, &p, coreModules()) }
	switch {
	case m.Component != nil:
		check = func(i wasmfile.Import) error { return checkComponentImport(i, &p) }
	case m.IsExtism():
		check = func(i wasmfile.Import) error {
			return checkCoreImport(i, &p, []string{wasiModule, ExtismEnv, ExtismUser})
		}
	}
	var errs []error
	seen := map[string]bool{}
	for _, i := range m.Imports {
		if err := check(i); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkCoreImport(i wasmfile.Import, p *Permissions, allowed []string) error {
	switch {
	case !slices.Contains(allowed, i.Module):
		return unknownImport(i, allowed)
	case i.Kind != wasmfile.KindFunc:
		return fmt.Errorf("the module imports the %s %q from %q, which has functions only", i.Kind, i.Name, i.Module)
	}
	for _, l := range permissionImports {
		if l.module == i.Module && !l.asked(p) {
			return notAsked("module", i.Module, l.permission)
		}
	}
	return checkFunction(i)
}

// notAsked is the error for an import that a permission links for which the manifest does not ask.
func notAsked(importer, imported, permission string) error {
	return fmt.Errorf("the %s imports %q, but the manifest does not ask for the permission %q that links it: "+
		"add it under permissions, or remove what uses it", importer, imported, permission)
}

func unknownImport(i wasmfile.Import, allowed []string) error {
	if base, version, ok := strings.Cut(i.Module, "/"); ok && strings.HasPrefix(i.Module, "hako:") {
		for _, known := range allowed {
			if knownBase, has, _ := strings.Cut(known, "/"); knownBase == base {
				return fmt.Errorf("the module imports version %s of %q, and this host has version %s: "+
					"rebuild with the PDK of this host, or update the host", strconv.Quote(version), base, has)
			}
		}
	}
	text := strictyaml.Unknown("import module", i.Module, allowed).Error()
	switch i.Module {
	case "env", "gojs", "wbg":
		text += "; build for WASI preview 1 (wasip1), not for a browser"
	case ExtismEnv, ExtismUser:
		text += "; it is made for Extism"
	}
	return errors.New(text)
}

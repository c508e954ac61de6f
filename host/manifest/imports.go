package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	wasiModule = "wasi_snapshot_preview1"
	extismEnv  = "extism:host/env"
	extismUser = "extism:host/user"
)

// importModule ties an import module to the permission that links it.
type importModule struct {
	module     string
	permission string // empty: every guest may import it
	asked      func(Permissions) bool
}

// importModules are those of ABI 1. Files need none: they come as WASI preopens.
var importModules = []importModule{
	{module: abi.CoreModule},
	{module: wasiModule},
	{abi.HTTPModule, "http", func(p Permissions) bool { return len(p.HTTP) > 0 }},
	{abi.SQLModule, "sql", func(p Permissions) bool { return p.SQL != nil }},
	{abi.ExecModule, "exec", func(p Permissions) bool { return p.Exec != nil }},
	{abi.ToolsModule, "tools", asksTools},
}

// extismModules are those of the Extism ABI. All its guests get the same functions; without a permission they refuse.
var extismModules = []importModule{{module: wasiModule}, {module: extismEnv}, {module: extismUser}}

// CheckImports checks that the module imports nothing but functions of the modules that permissions link, with their
// types, and a component nothing but interfaces that hako has. All imports that are not so are in the error.
func CheckImports(m *wasmfile.Module, p Permissions) error {
	check := func(i wasmfile.Import) error { return checkImport(i, p, importModules) }
	switch {
	case m.Component != nil:
		check = func(i wasmfile.Import) error { return checkComponentImport(i, p) }
	case m.IsExtism():
		check = func(i wasmfile.Import) error { return checkImport(i, p, extismModules) }
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

func checkImport(i wasmfile.Import, p Permissions, allowed []importModule) error {
	for _, known := range allowed {
		switch {
		case known.module != i.Module:
			continue
		case i.Kind != wasmfile.KindFunc:
			return fmt.Errorf("the module imports the %s %q from %q, which has functions only", i.Kind, i.Name,
				i.Module)
		case known.permission != "" && !known.asked(p):
			return fmt.Errorf("the module imports %q, but the manifest does not ask for the permission %q that links it: add it under permissions, or remove what uses it",
				i.Module, known.permission)
		}
		return checkFunction(i)
	}
	return unknownImport(i, allowed)
}

func unknownImport(i wasmfile.Import, allowed []importModule) error {
	if base, version, ok := strings.Cut(i.Module, "/"); ok && strings.HasPrefix(i.Module, "hako:") {
		for _, known := range allowed {
			if knownBase, has, _ := strings.Cut(known.module, "/"); knownBase == base {
				return fmt.Errorf("the module imports version %s of %q, and this host has version %s: rebuild with the PDK of this host, or update the host",
					strconv.Quote(version), base, has)
			}
		}
	}
	names := make([]string, len(allowed))
	for j, known := range allowed {
		names[j] = known.module
	}
	text := strictyaml.Unknown("import module", i.Module, names).Error()
	switch i.Module {
	case "env", "gojs", "wbg":
		text += "; build for WASI preview 1 (wasip1), not for a browser"
	case extismEnv, extismUser:
		text += "; it is made for Extism"
	}
	return errors.New(text)
}

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
)

// witPackage is a package of WIT whose interfaces components may import.
type witPackage struct{ name, interfaces string }

// witPackages are those that hako offers, in the versions 0.2.x and their drafts; permissionImports has the interfaces
// that need a permission. Toolchains link wasi:filesystem, wasi:http and wasi:sockets into every component, so they
// need none: without one there are no directories, and each request or socket is refused. componentize-py links
// wasmcp's interfaces of the server into every component that has one of its types, and hako has no functions for them:
// calling one is an error.
var witPackages = []witPackage{
	{"wasi:cli", "environment exit stdin stdout stderr " +
		"terminal-input terminal-output terminal-stdin terminal-stdout terminal-stderr"},
	{"wasi:clocks", "monotonic-clock wall-clock timezone"},
	{"wasi:config", "store runtime"},
	{"wasi:filesystem", "types preopens"},
	{"wasi:http", "types outgoing-handler"},
	{"wasi:io", "error poll streams"},
	{"wasi:keyvalue", "store atomics batch"},
	{"wasi:logging", "logging"},
	{"wasi:random", "random insecure insecure-seed"},
	{"wasi:sockets", "instance-network ip-name-lookup network tcp tcp-create-socket udp udp-create-socket"},
	{"wasmcp:mcp-v20251125", "server-auth server-handler server-io"},
	{"hako:exec", "commands"},
	{"hako:sql", "database"},
	{"hako:tool", "log progress"},
	{"hako:tools", "calls"},
}

// checkComponentImport checks that hako has the interface that a component imports a function of.
func checkComponentImport(i wasmfile.Import, p *Permissions) error {
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
			return fmt.Errorf("the component imports %q, and hako runs components of WASI 0.2: build it for WASI 0.2 "+
				"(Rust: the target wasm32-wasip2; componentize-qjs: with --sync)", i.Module)
		case !slices.Contains(interfaces, inside):
			return fmt.Errorf("the component imports %q: %s", i.Module,
				strictyaml.Unknown("interface of "+name, inside, interfaces))
		}
		for _, l := range permissionImports {
			if slices.Contains(l.interfaces, path) && !l.refuses && !l.asked(p) {
				return notAsked("component", i.Module, l.permission)
			}
		}
		return nil
	}
	names := make([]string, len(witPackages))
	for j, known := range witPackages {
		names[j] = known.name
	}
	return fmt.Errorf("the component imports %q: %s; compose the component with one that exports it (wac plug)",
		i.Module, strictyaml.Unknown("package", name, names))
}

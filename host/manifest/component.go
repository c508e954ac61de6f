package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
)

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
func checkComponentImport(i wasmfile.Import, p Permissions) error {
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

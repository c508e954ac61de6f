package manifest_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileImports asks for what no host gives: all of it is refused from the bytes, before anybody is asked to
// approve the plugin.
func TestHostileImports(t *testing.T) {
	t.Parallel()
	i32, i64 := manifest.I32, manifest.ValueType(0x7E)
	function := func(params, results []manifest.ValueType) *manifest.FuncType {
		return &manifest.FuncType{Params: params, Results: results}
	}
	web := manifest.Permissions{HTTP: []manifest.HTTPPermission{{URL: "https://example.com"}}}
	for name, test := range map[string]struct {
		i    manifest.Import
		p    manifest.Permissions
		want string
	}{
		"a function that WASI never had": {manifest.Import{Module: "wasi_snapshot_preview1", Name: "proc_exec",
			Type: function(nil, nil)}, web, `unknown function "proc_exec"`},
		"a function of a later WASI": {manifest.Import{Module: "wasi_snapshot_preview1", Name: "sock_open",
			Type: function(nil, nil)}, web, `unknown function "sock_open"`},
		"a function of the host's own": {manifest.Import{Module: "hako:fuel", Name: "spent",
			Type: function(nil, nil)}, web, "hako:fuel"},
		"the globals of the host's own": {manifest.Import{Module: "hako:core/1", Name: "hako_fuel",
			Kind: manifest.KindGlobal}, web, "functions only"},
		"an unknown function of the core": {manifest.Import{Module: abi.CoreModule, Name: "exec",
			Type: function(nil, nil)}, web, `unknown function "exec"`},
		"a core function with a result": {manifest.Import{Module: abi.CoreModule, Name: "take",
			Type: function([]manifest.ValueType{i32}, []manifest.ValueType{i32})}, web,
			"as a function (i32) -> (i32), but it is (i32) -> ()"},
		"a WASI function of 64 bits": {manifest.Import{Module: "wasi_snapshot_preview1", Name: "fd_write",
			Type: function([]manifest.ValueType{i64, i64, i64, i64}, []manifest.ValueType{i32})}, web,
			"but it is (i32, i32, i32, i32) -> (i32)"},
		"a granted function of another type": {manifest.Import{Module: abi.HTTPModule, Name: "request",
			Type: function([]manifest.ValueType{i32}, nil)}, web, "rebuild it with a PDK"},
		"a granted module's unknown function": {manifest.Import{Module: abi.HTTPModule, Name: "listen",
			Type: function(nil, nil)}, web, `unknown function "listen"`},
		"a function of a permission not asked": {manifest.Import{Module: abi.ExecModule, Name: "start",
			Type: function([]manifest.ValueType{i32, i32}, []manifest.ValueType{i32})}, web, `the permission "exec"`},
		"a memory of WASI's": {manifest.Import{Module: "wasi_snapshot_preview1", Name: "memory",
			Kind: manifest.KindMemory}, web, "imports the memory"},
		"a table of the core's": {manifest.Import{Module: abi.CoreModule, Name: "table",
			Kind: manifest.KindTable}, web, "imports the table"},
		"a memory of the environment's": {manifest.Import{Module: "env", Name: "memory",
			Kind: manifest.KindMemory}, web, "build for WASI preview 1"},
		"a function of Extism's": {manifest.Import{Module: "extism:host/env", Name: "alloc",
			Type: function([]manifest.ValueType{i64}, []manifest.ValueType{i64})}, web, "it is made for Extism"},
		"an empty module": {manifest.Import{Type: function(nil, nil)}, web, "import module"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := manifest.Module{Imports: []manifest.Import{test.i},
				Exports: []manifest.Export{{Name: abi.Marker, Type: &manifest.FuncType{}}}}
			err := m.CheckImports(test.p)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

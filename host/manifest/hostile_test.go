package manifest_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileImports asks for what no host gives: all of it is refused from the bytes, before anybody is asked to
// approve the plugin.
func TestHostileImports(t *testing.T) {
	t.Parallel()
	i32, i64 := wasmfile.I32, wasmfile.ValueType(0x7E)
	function := func(params, results []wasmfile.ValueType) *wasmfile.FuncType {
		return &wasmfile.FuncType{Params: params, Results: results}
	}
	web := manifest.Permissions{HTTP: []manifest.HTTPPermission{{URL: "https://example.com"}}}
	for name, test := range map[string]struct {
		i    wasmfile.Import
		p    manifest.Permissions
		want string
	}{
		"a function that WASI never had": {wasmfile.Import{Module: "wasi_snapshot_preview1", Name: "proc_exec",
			Type: function(nil, nil)}, web, `unknown function "proc_exec"`},
		"a function of a later WASI": {wasmfile.Import{Module: "wasi_snapshot_preview1", Name: "sock_open",
			Type: function(nil, nil)}, web, `unknown function "sock_open"`},
		"a function of the host's own": {wasmfile.Import{Module: "hako:fuel", Name: "spent",
			Type: function(nil, nil)}, web, "hako:fuel"},
		"the globals of the host's own": {wasmfile.Import{Module: "hako:core/1", Name: "hako_fuel",
			Kind: wasmfile.KindGlobal}, web, "functions only"},
		"an unknown function of the core": {wasmfile.Import{Module: abi.CoreModule, Name: "exec",
			Type: function(nil, nil)}, web, `unknown function "exec"`},
		"a core function with a result": {wasmfile.Import{Module: abi.CoreModule, Name: "take",
			Type: function([]wasmfile.ValueType{i32}, []wasmfile.ValueType{i32})}, web,
			"as a function (i32) -> (i32), but it is (i32) -> ()"},
		"a WASI function of 64 bits": {wasmfile.Import{Module: "wasi_snapshot_preview1", Name: "fd_write",
			Type: function([]wasmfile.ValueType{i64, i64, i64, i64}, []wasmfile.ValueType{i32})}, web,
			"but it is (i32, i32, i32, i32) -> (i32)"},
		"a granted function of another type": {wasmfile.Import{Module: abi.HTTPModule, Name: "request",
			Type: function([]wasmfile.ValueType{i32}, nil)}, web, "rebuild it with a PDK"},
		"a granted module's unknown function": {wasmfile.Import{Module: abi.HTTPModule, Name: "listen",
			Type: function(nil, nil)}, web, `unknown function "listen"`},
		"a function of a permission not asked": {wasmfile.Import{Module: abi.ExecModule, Name: "start",
			Type: function([]wasmfile.ValueType{i32, i32}, []wasmfile.ValueType{i32})}, web, `the permission "exec"`},
		"a memory of WASI's": {wasmfile.Import{Module: "wasi_snapshot_preview1", Name: "memory",
			Kind: wasmfile.KindMemory}, web, "imports the memory"},
		"a table of the core's": {wasmfile.Import{Module: abi.CoreModule, Name: "table",
			Kind: wasmfile.KindTable}, web, "imports the table"},
		"a memory of the environment's": {wasmfile.Import{Module: "env", Name: "memory",
			Kind: wasmfile.KindMemory}, web, "build for WASI preview 1"},
		"a function of Extism's": {wasmfile.Import{Module: "extism:host/env", Name: "alloc",
			Type: function([]wasmfile.ValueType{i64}, []wasmfile.ValueType{i64})}, web, "it is made for Extism"},
		"an empty module": {wasmfile.Import{Type: function(nil, nil)}, web, "import module"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := wasmfile.Module{Imports: []wasmfile.Import{test.i},
				Exports: []wasmfile.Export{{Name: abi.Marker, Type: &wasmfile.FuncType{}}}}
			err := manifest.CheckImports(&m, test.p)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

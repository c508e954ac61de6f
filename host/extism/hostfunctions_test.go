package extism

import (
	"maps"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
)

// TestHostFunctions compares the linked functions with those against which manifests are checked.
func TestHostFunctions(t *testing.T) {
	t.Parallel()
	web, err := httpbroker.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	modules := append((&Adapter{}).modules(), web.Module(), sqlbroker.New(new(grant.SQL), sqlbroker.Options{}).Module(),
		execbroker.Idle().Module(), sandbox.CoreModule)
	kinds := map[broker.Type]wasmfile.ValueType{broker.I32: wasmfile.I32, broker.I64: 0x7E, broker.F64: 0x7C}
	for _, module := range modules {
		linked := map[string]string{}
		for _, f := range module.Functions {
			var kind wasmfile.FuncType
			for _, param := range f.Params {
				kind.Params = append(kind.Params, kinds[param])
			}
			if f.Result != nil {
				kind.Results = append(kind.Results, kinds[*f.Result])
			}
			linked[f.Name] = kind.String()
		}
		compareFunctions(t, module.Name, linked)
	}
	runtime := wazero.NewRuntime(t.Context())
	defer runtime.Close(t.Context())
	wasi, err := wasi_snapshot_preview1.NewBuilder(runtime).Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]string{}
	for name, f := range wasi.ExportedFunctions() {
		var kind wasmfile.FuncType
		for _, param := range f.ParamTypes() {
			kind.Params = append(kind.Params, wasmfile.ValueType(param))
		}
		for _, result := range f.ResultTypes() {
			kind.Results = append(kind.Results, wasmfile.ValueType(result))
		}
		linked[name] = kind.String()
	}
	compareFunctions(t, wasi_snapshot_preview1.ModuleName, linked)
}

func compareFunctions(t *testing.T, module string, linked map[string]string) {
	t.Helper()
	known := map[string]string{}
	for name, kind := range manifest.HostFunctions(module) {
		known[name] = kind.String()
	}
	if !maps.Equal(known, linked) {
		t.Errorf("%s: a manifest is checked against %v, linked are %v", module, known, linked)
	}
}

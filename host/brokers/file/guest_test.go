package file_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
)

// TestGoGuest runs a program built with the standard Go compiler on real mounts.
func TestGoGuest(t *testing.T) {
	t.Parallel()
	inside, secret := outside(t)
	host(t, inside, map[string]string{"given": "given"})
	symlink(t, "given", filepath.Join(inside, "inner"))
	symlink(t, secret, filepath.Join(inside, "outer"))
	reference := t.TempDir()
	host(t, reference, map[string]string{"given": "given", ".env": "token"})

	handles := file.NewHandles(8)
	workspace := mount(t, grant.Mount{Name: "workspace", Path: inside, Write: true, Quota: 2 << 20})
	readOnly := mount(t, grant.Mount{Name: "reference", Path: reference, Deny: []string{"**/.env"}})
	mounts := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(workspace.FS(handles), workspace.GuestPath())
	mounts = mounts.(sysfs.FSConfig).WithSysFSMount(readOnly.FS(handles), readOnly.GuestPath())

	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer runtime.Close(ctx)
	linkWASI(t, runtime, handles)
	handles.Begin(ctx, nil)
	var out bytes.Buffer
	config := wazero.NewModuleConfig().WithFSConfig(mounts).WithStdout(&out).WithStderr(&out)
	if _, err := runtime.InstantiateWithConfig(ctx, compile(t), config); err != nil {
		t.Error(err)
	}
	if out.String() != "done\n" {
		t.Errorf("the guest says:\n%s", out.String())
	}
	handles.End()
	unchanged(t, inside)
}

// linkWASI links WASI so that errnos that wazero lacks reach the guest.
func linkWASI(t *testing.T, runtime wazero.Runtime, handles *file.Handles) {
	t.Helper()
	plain, err := wasi_snapshot_preview1.NewBuilder(runtime).Compile(t.Context())
	must(t, err)
	builder := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	for name, def := range plain.ExportedFunctions() {
		function := def.GoFunction().(api.GoModuleFunction)
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context,
			m api.Module, stack []uint64) {
			function.Call(ctx, m, stack)
			const eio = 29
			if wasiOnly := handles.Errno(); len(def.ResultTypes()) == 1 && stack[0] == eio && wasiOnly != 0 {
				stack[0] = uint64(wasiOnly)
			}
		}), def.ParamTypes(), def.ResultTypes()).Export(name)
	}
	_, err = builder.Instantiate(t.Context())
	must(t, err)
}

// compile builds testdata/guest.
func compile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./testdata/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wasm, err := os.ReadFile(path)
	must(t, err)
	return wasm
}

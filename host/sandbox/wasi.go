package sandbox

import (
	"context"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// eio is WASI's errno for an I/O error.
const eio = 29

// linkWASI links WASI preview 1. wazero knows twenty errnos and gives a guest EIO for all others, such as EDQUOT; the functions on
// files are wrapped to put in what the mounts meant.
func linkWASI(ctx context.Context, runtime wazero.Runtime) error {
	plain, err := wasi_snapshot_preview1.NewBuilder(runtime).Compile(ctx)
	if err != nil {
		return err
	}
	builder := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	for name, definition := range plain.ExportedFunctions() {
		function := definition.GoFunction().(api.GoModuleFunction)
		if strings.HasPrefix(name, "fd_") || strings.HasPrefix(name, "path_") {
			function = withErrno(function)
		}
		if lastingWASI[name] {
			function = noted(function, name)
		}
		function = timed(function)
		builder.NewFunctionBuilder().WithGoModuleFunction(function, definition.ParamTypes(), definition.ResultTypes()).Export(name)
	}
	_, err = builder.Instantiate(ctx)
	return err
}

// lastingWASI are the functions that change a descriptor for good. Applied to one that an instance has from the start, what they do would
// show in the next call.
var lastingWASI = map[string]bool{"fd_close": true, "fd_renumber": true, "fd_fdstat_set_flags": true, "fd_readdir": true, "fd_seek": true}

// noted marks the instance as spoiled when a guest changes one of the descriptors that it started with.
func noted(function api.GoModuleFunction, name string) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		i := ctx.Value(instanceKey{}).(*instance)
		descriptor := uint32(stack[0])
		// Runtimes set flags of the standard descriptors when they start. Nothing depends on these.
		harmless := !i.started && descriptor < 3 && name == "fd_fdstat_set_flags"
		if !harmless && (descriptor < i.descriptors || name == "fd_renumber") {
			i.spoiled = true
		}
		function.Call(ctx, module, stack)
	})
}

// timed ends a call whose time is up.
func timed(function api.GoModuleFunction) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		if err := ctx.Err(); err != nil {
			panic(err)
		}
		function.Call(ctx, module, stack)
	})
}

// withErrno replaces an EIO by the errno behind it.
func withErrno(function api.GoModuleFunction) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		function.Call(ctx, module, stack)
		if stack[0] != eio {
			return
		}
		if errno := ctx.Value(instanceKey{}).(*instance).files.Errno(); errno != 0 {
			stack[0] = uint64(errno)
		}
	})
}

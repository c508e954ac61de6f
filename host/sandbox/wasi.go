package sandbox

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/broker/file"
)

// Errnos of WASI preview 1.
const (
	einval       = 28
	eio          = 29
	enametoolong = 37
)

// linkWASI links WASI preview 1. Its functions are paid for, and what a guest may hand them at once is bounded. wazero knows twenty errnos
// and gives a guest EIO for all others, such as EDQUOT; the functions on files are wrapped to put in what the mounts meant.
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
		function = paid(bounded(function, name))
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

// paid charges for a function, and ends a call that is over: before the function, and after it, because the mounts only tell the guest.
// Others may have the processor while the function waits.
func paid(function api.GoModuleFunction) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		c := callOf(ctx)
		c.Charge(broker.CallSteps)
		c.turn.leave()
		function.Call(ctx, module, stack)
		if err := c.turn.back(ctx); err != nil {
			panic(err)
		}
		c.Charge(0)
	})
}

const (
	// maxVectors is how many vectors one read or write handles, and maxTransfer how many bytes, unless the first vector alone has more. The
	// rest is for the next call: guests have to expect short reads and writes.
	maxVectors  = 1024
	maxTransfer = file.MaxTransfer
	// maxSubscriptions is how many events one poll waits for.
	maxSubscriptions = 1024
	// maxListing is how many bytes of a directory's entries are listed at once.
	maxListing = 1 << 20
)

// pathLengths are the parameters that hold the length of a path.
var pathLengths = map[string][]int{
	"path_create_directory": {2}, "path_filestat_get": {3}, "path_filestat_set_times": {3}, "path_link": {3, 6}, "path_open": {3},
	"path_readlink": {2}, "path_remove_directory": {2}, "path_rename": {2, 5}, "path_symlink": {1, 4}, "path_unlink_file": {2},
}

// bounded refuses, cuts or charges for lists and texts of a guest's that are long. wazero goes through them without looking at the time.
func bounded(function api.GoModuleFunction, name string) api.GoModuleFunction {
	var check func(c *call, module api.Module, stack []uint64) uint64
	switch name {
	case "fd_read", "fd_pread", "fd_write", "fd_pwrite":
		check = func(c *call, module api.Module, stack []uint64) uint64 {
			count := vectors(module.Memory(), uint32(stack[1]), uint32(stack[2]))
			stack[2] = uint64(count)
			c.Charge(int64(count) * broker.EntrySteps)
			return 0
		}
	case "fd_readdir":
		check = func(c *call, _ api.Module, stack []uint64) uint64 {
			length := uint32(stack[2])
			c.Charge(broker.CopySteps(uint64(min(length, maxListing))))
			return refuseAbove(length, maxListing, einval)
		}
	case "poll_oneoff":
		check = func(c *call, _ api.Module, stack []uint64) uint64 {
			count := uint32(stack[2])
			c.Charge(int64(min(count, maxSubscriptions)) * broker.EntrySteps)
			return refuseAbove(count, maxSubscriptions, einval)
		}
	default:
		lengths := pathLengths[name]
		if lengths == nil {
			return function
		}
		check = func(_ *call, _ api.Module, stack []uint64) uint64 {
			for _, i := range lengths {
				if errno := refuseAbove(uint32(stack[i]), file.MaxPath, enametoolong); errno != 0 {
					return errno
				}
			}
			return 0
		}
	}
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		if errno := check(callOf(ctx), module, stack); errno != 0 {
			stack[0] = errno
			return
		}
		function.Call(ctx, module, stack)
	})
}

func refuseAbove(n, most uint32, errno uint64) uint64 {
	if n > most {
		return errno
	}
	return 0
}

// vectors is how many of count vectors one read or write handles: at least those up to the first that is not empty, because nothing
// read means the end of the file.
func vectors(memory api.Memory, at, count uint32) uint32 {
	list, ok := memory.Read(at, 8*min(count, maxVectors))
	if !ok {
		return count // which fails
	}
	total := uint64(0)
	for i := range uint32(len(list) / 8) {
		length := uint64(binary.LittleEndian.Uint32(list[8*i+4:]))
		if total > 0 && total+length > maxTransfer {
			return i
		}
		total += length
	}
	return uint32(len(list) / 8)
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

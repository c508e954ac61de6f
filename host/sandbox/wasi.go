package sandbox

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// Errnos of WASI preview 1.
const (
	einval       = 28
	eio          = 29
	enametoolong = 37
)

// linkWASI links WASI preview 1 with charges for each function and bounds on its arguments. wazero knows twenty errnos
// and reports all others, such as EDQUOT, as EIO; the wrapper around file functions restores the errno of the mount.
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
		if descriptorChanging[name] {
			function = markingDescriptors(function, name)
		}
		function = charged(bounded(function, name))
		builder.NewFunctionBuilder().
			WithGoModuleFunction(function, definition.ParamTypes(), definition.ResultTypes()).
			Export(name)
	}
	_, err = builder.Instantiate(ctx)
	return err
}

// descriptorChanging are the functions that change a descriptor permanently. If they change a descriptor that exists
// from the start, the next call would see it.
var descriptorChanging = map[string]bool{
	"fd_close": true, "fd_renumber": true, "fd_fdstat_set_flags": true, "fd_readdir": true, "fd_seek": true,
}

// markingDescriptors wraps function to set descriptorsChanged when a guest changes a descriptor that exists from the
// start.
func markingDescriptors(function api.GoModuleFunction, name string) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		i := ctx.Value(instanceKey{}).(*instance)
		descriptor := uint32(stack[0])
		// Language runtimes set flags of the standard descriptors during start, which have no effect.
		harmless := !i.started && descriptor < 3 && name == "fd_fdstat_set_flags"
		if !harmless && (descriptor < i.descriptors || name == "fd_renumber") {
			i.descriptorsChanged = true
		}
		function.Call(ctx, module, stack)
	})
}

// charged wraps function to charge steps and to stop a call that has ended, before the function and after it, because
// mounts report the end only as an errno. The guest is preemptible while the function runs.
func charged(function api.GoModuleFunction) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
		c := callOf(ctx)
		c.Charge(fuel.CallSteps)
		c.turn.enterHost()
		function.Call(ctx, module, stack)
		if err := c.turn.leaveHost(ctx); err != nil {
			panic(err)
		}
		c.Charge(0)
	})
}

const (
	// maxVectors and maxTransfer bound the vectors and the bytes of one read or write; the first vector may have more
	// bytes. Guests have to expect short reads and writes.
	maxVectors  = 1024
	maxTransfer = file.MaxTransfer
	// maxSubscriptions bounds the events of one poll.
	maxSubscriptions = 1024
	// maxListing bounds the bytes of one directory listing.
	maxListing = 1 << 20
)

// pathLengths are the indexes of parameters with the length of a path.
var pathLengths = map[string][]int{
	"path_create_directory": {2}, "path_filestat_get": {3}, "path_filestat_set_times": {3}, "path_link": {3, 6},
	"path_open": {3}, "path_readlink": {2}, "path_remove_directory": {2}, "path_rename": {2, 5},
	"path_symlink": {1, 4}, "path_unlink_file": {2},
}

// bounded wraps function to refuse, shorten or charge for long lists and texts. wazero processes them without checking
// the deadline.
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
			c.Charge(fuel.CopySteps(uint64(min(length, maxListing))))
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

// vectors returns how many of count vectors one read or write handles: at least up to the first non-empty one, because
// reading nothing would mean the end of the file.
func vectors(memory api.Memory, at, count uint32) uint32 {
	list, ok := memory.Read(at, 8*min(count, maxVectors))
	if !ok {
		return count // the function reports the error
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

// withErrno wraps function to replace EIO by the errno of the mount.
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

// Package wasi implements WASI 0.2 for components: the interfaces of wasi:cli, io, clocks, random, filesystem, http and
// others on hako's brokers. It gives a component nothing that a core module with the same grants does not have.
//
// A resource that belongs to one call ends with it. Those that a component may keep from its start, such as standard
// streams and preopened directories, have no state and implement component.Lasting.
//
// Source: https://github.com/WebAssembly/WASI, release 0.2.12. docs/components.md lists what is offered and refused.
package wasi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Options configures the interfaces of one plugin. A nil *Options means all defaults.
type Options struct {
	// Environment are the environment variables, as name and value. wasi:config has them too.
	Environment [][2]string
	// Now is the wall clock. Nil means time.Now.
	Now func() time.Time
	// Monotonic is the monotonic clock, in nanoseconds. It must not be before the clock of the process that captured an
	// instance's image. Nil means a clock that starts with New.
	Monotonic func() uint64
	// RandomDrawn, if set, is called when a guest draws random numbers, with the context of the host function. An
	// instance that does so in its start must not be copied.
	RandomDrawn func(ctx context.Context)
	// Print gets what a guest writes to standard output (abi.LogInfo) and standard error (abi.LogWarn), Log its log
	// records. Both enforce the log limit of the call. Nil discards the output.
	Print func(ctx context.Context, level abi.LogLevel, text []byte)
	Log   func(ctx context.Context, level abi.LogLevel, text string)
	// Mounts are the granted directories, which must stay open as long as the interfaces are used.
	Mounts []*file.Mount
	// Outside, if set, is called with a path that the guest uses and that lies under no mount.
	Outside func(ctx context.Context, path string)
	// OpenFiles is the number of files and directories that one call may have open. Zero means 64.
	OpenFiles int
	// Memory bounds the linear memory of an instance, in bytes, and so the results that it can get at once. Zero means
	// 64 MiB.
	Memory int64
	// HTTP sends requests. Nil means that the plugin has no grant for them.
	HTTP *httpbroker.Broker
	// SQL is the private database. Nil means that the plugin has no grant for it.
	SQL *sqlbroker.Broker
	// Exec runs commands. Nil means that the plugin has no grant for them.
	Exec *execbroker.Broker
	// Tools calls other tools. Nil means that the plugin has no grant for them.
	Tools *toolbroker.Broker
	// Progress, if set, gets the progress reports of a call.
	Progress func(ctx context.Context, report abi.Progress)
}

// version is the minor version of WASI.
const version = "0.2"

// host implements the interfaces. It is immutable.
type host struct {
	Options
	seed maphash.Seed // of hashes that guests see
}

// New returns the interfaces of WASI 0.2. They may be linked into any number of instances of the plugin.
func New(options *Options) []broker.Interface {
	h := &host{seed: maphash.MakeSeed()}
	if options != nil {
		h.Options = *options
	}
	h.Memory = cmp.Or(h.Memory, manifest.DefaultLimits.Memory)
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Monotonic == nil {
		start := time.Now()
		h.Monotonic = func() uint64 { return uint64(time.Since(start)) }
	}
	if h.RandomDrawn == nil {
		h.RandomDrawn = func(context.Context) {}
	}
	if h.Print == nil {
		h.Print = func(context.Context, abi.LogLevel, []byte) {}
	}
	if h.Log == nil {
		h.Log = func(context.Context, abi.LogLevel, string) {}
	}
	if h.Outside == nil {
		h.Outside = func(context.Context, string) {}
	}
	if h.Progress == nil {
		h.Progress = func(context.Context, abi.Progress) {}
	}
	var all []broker.Interface
	for _, add := range []func() []broker.Interface{
		h.cli, h.io, h.clocks, h.random, h.filesystem, h.http, h.sockets, h.logging, h.config,
		h.keyvalue, h.hako,
	} {
		all = append(all, add()...)
	}
	for i := range all {
		all[i].Functions = named(all[i].Name, all[i].Functions)
	}
	return all
}

// functions are the functions of an interface by name.
type functions = map[string]broker.InterfaceFunc

func wasi(name string, f functions) broker.Interface {
	return broker.Interface{Name: "wasi:" + name, Version: version, Functions: f}
}

// named returns the functions of an interface with errors that name them.
func named(name string, f functions) functions {
	all := functions{}
	for function, do := range f {
		all[function] = func(ctx context.Context, call *broker.Call, args []any) any {
			defer func() {
				switch r := recover(); r {
				case nil:
				case errType:
					panic(fmt.Errorf("%s#%s: %w", name, function, errType))
				default:
					panic(r)
				}
			}()
			return do(ctx, call, args)
		}
	}
	return all
}

// caller is the guest's call of one host function.
type caller struct {
	ctx context.Context
	*broker.Call
}

// errType ends the call of a component that imports a function with other types than the interface has.
var errType = errors.New("the component imports it with other types than the interface has: build it with the WIT " +
	"files of WASI 0.2 and of hako's pdk/wit")

// arg returns argument i. A value of another type ends the call.
func arg[T any](args []any, i int) T {
	if i < len(args) {
		if v, ok := args[i].(T); ok {
			return v
		}
	}
	panic(errType)
}

func func0(do func(caller) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, _ []any) any { return do(caller{ctx, call}) }
}

func func1[A any](do func(caller, A) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, args []any) any {
		return do(caller{ctx, call}, arg[A](args, 0))
	}
}

func func2[A, B any](do func(caller, A, B) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, args []any) any {
		return do(caller{ctx, call}, arg[A](args, 0), arg[B](args, 1))
	}
}

func func3[A, B, C any](do func(caller, A, B, C) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, args []any) any {
		return do(caller{ctx, call}, arg[A](args, 0), arg[B](args, 1), arg[C](args, 2))
	}
}

func func4[A, B, C, D any](do func(caller, A, B, C, D) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, args []any) any {
		return do(caller{ctx, call}, arg[A](args, 0), arg[B](args, 1), arg[C](args, 2), arg[D](args, 3))
	}
}

func func5[A, B, C, D, E any](do func(caller, A, B, C, D, E) any) broker.InterfaceFunc {
	return func(ctx context.Context, call *broker.Call, args []any) any {
		return do(caller{ctx, call}, arg[A](args, 0), arg[B](args, 1), arg[C](args, 2), arg[D](args, 3),
			arg[E](args, 4))
	}
}

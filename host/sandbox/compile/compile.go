// Package compile compiles Wasm modules to machine code in a child process.
//
// A module of a few kilobytes can make wazero's compiler use gigabytes and minutes, so only the child runs it.
// Compiler.Compile starts this program again, before its own main and with nothing but the module, under limits of
// memory, processor time, wall time and file size. The child writes into a directory of its own. Its output is
// validated and moved into wazero's cache, from which Load takes it. A module that exceeds the Limits is refused with a
// *LimitError.
package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/host/wasm"
)

// Limits bound the compilation of one module.
type Limits struct {
	// Memory bounds the child's memory, in bytes; CPU its processor time, in whole seconds; Time its wall time.
	Memory    int64
	CPU, Time time.Duration
	// Code bounds the bytes of machine code per byte of the module; BaseCode is added to that bound.
	Code, BaseCode int64
}

// DefaultLimits are about ten times what plugins of the Go compiler need, and enough for CPython (1.4 GiB, 8 s). Time
// is for a child that hangs: on a busy machine, a minute of processor time takes several minutes.
var DefaultLimits = Limits{Memory: 2 << 30, CPU: time.Minute, Time: 10 * time.Minute, Code: 16, BaseCode: 4 << 20}

// LimitError means that the compiler exceeded its limits or failed in a way that would repeat. The module must not be
// compiled again.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return "the compiler was ended: " + e.Reason }

// ErrNotCached is returned by Load if the cache has no usable code of the module.
var ErrNotCached = errors.New("no compiled code in the cache")

// Config is the configuration of runtimes for Load.
func Config(cache wazero.CompilationCache) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache).WithCoreFeatures(wasm.Features).
		WithDebugInfoEnabled(false)
}

// workers is the number of concurrent compilations of functions. With more than one, wazero checks the context before
// each function.
const workers = 2

// Load returns the compiled code of the module with this stub from the cache of the runtime. Wazero neither decodes nor
// validates nor keeps the bodies of the functions that way, which are most of a module. Load passes a canceled context,
// with which wazero loads cached code but compiles nothing.
func Load(ctx context.Context, runtime wazero.Runtime, stub []byte) (wazero.CompiledModule, error) {
	ctx, cancel := context.WithCancel(experimental.WithCompilationWorkers(ctx, workers))
	cancel()
	code, err := runtime.CompileModule(ctx, stub)
	switch {
	case err == nil:
		return code, nil
	case errors.Is(err, context.Canceled):
		return nil, ErrNotCached
	case strings.HasPrefix(err.Error(), damagedCode):
		return nil, fmt.Errorf("%w: %v", ErrNotCached, err)
	}
	return nil, err
}

// Compiler compiles modules in child processes. The zero value has DefaultLimits.
type Compiler struct {
	Limits Limits
	// Program replaces this program as the child, for tests.
	Program string
}

// childName is argument 0 of the child; argument 1 is a childConfig as JSON.
const childName = "hako-compile"

// Exit codes of the child. Its output has the details.
const (
	exitInvalid = 3 // the module is not valid
	exitCode    = 4 // the code is too large
	exitMemory  = 5
	exitSystem  = 6 // not the module's fault: the disk is full, for example
	exitCPU     = 7
)

// maxReport bounds the output that is read of the child, in bytes.
const maxReport = 8 << 10

// Compile compiles a module that defines functions functions, and puts its code into the wazero cache at dir as that of
// stub, which is rewrite.Stub of the module. It returns the path of the code. The error matches a *LimitError if the
// module must not be compiled again, and the error of ctx if ctx ended.
func (c *Compiler) Compile(
	ctx context.Context, dir string, module, stub []byte, functions int,
) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, tempPrefix)
	if err != nil {
		return "", fmt.Errorf("make a directory for the compiler: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	limits := c.Limits
	if limits == (Limits{}) {
		limits = DefaultLimits
	}
	largest := limits.BaseCode + limits.Code*int64(len(module))
	if err := c.run(ctx, temp, module, stub, limits, largest); err != nil {
		return "", err
	}
	return install(ctx, temp, dir, stub, functions, largest)
}

// tempPrefix starts the names of the children's directories.
const tempPrefix = ".compile-"

// childConfig is the configuration of the child.
type childConfig struct {
	Memory  int64
	CPU     uint64 // seconds
	MaxFile int64  // bytes of a file
	// Stub is the size of the stub, in bytes. The module follows it in the input.
	Stub int
}

func (c *Compiler) run(
	ctx context.Context, dir string, module, stub []byte, limits Limits, largest int64,
) error {
	encoded, err := json.Marshal(childConfig{limits.Memory, uint64(limits.CPU.Seconds()), largest, len(stub)})
	if err != nil {
		return err
	}
	program := c.Program
	if program == "" {
		if program, err = Self(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	timed, cancel := context.WithTimeoutCause(ctx, limits.Time, errTimeLimit)
	defer cancel()
	report := &boundedBuffer{limit: maxReport}
	child := exec.CommandContext(timed, program)
	child.Args = []string{childName, string(encoded)}
	child.Dir, child.Env = dir, []string{fmt.Sprintf("GOMAXPROCS=%d", workers), "GOTRACEBACK=none"}
	child.Stdin = io.MultiReader(bytes.NewReader(stub), bytes.NewReader(module))
	child.Stdout, child.Stderr = report, report
	child.WaitDelay = time.Second
	runtime.LockOSThread() // Pdeathsig kills the child when the thread that started it ends
	defer runtime.UnlockOSThread()
	group, err := start(child)
	if err == nil {
		err = child.Wait()
		_ = group.Close()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(timed), errTimeLimit):
		return &LimitError{fmt.Sprintf("it took longer than %v", limits.Time)}
	case child.ProcessState == nil:
		return fmt.Errorf("start the compiler: %w", err)
	}
	return childError(child.ProcessState, limits, largest, strings.TrimSpace(report.String()))
}

var errTimeLimit = errors.New("the compiler's time is up")

// childError returns the error for a child that failed.
func childError(state *os.ProcessState, limits Limits, largest int64, report string) error {
	memory := &LimitError{fmt.Sprintf("it took more than %d MiB of memory", limits.Memory>>20)}
	used := state.UserTime() + state.SystemTime()
	switch code := state.ExitCode(); {
	case code == exitInvalid:
		return fmt.Errorf("compile: %s", report)
	case code == exitCode:
		return &LimitError{fmt.Sprintf("it made more than %d MiB of code", largest>>20)}
	case code == exitMemory, strings.Contains(report, "out of memory"),
		strings.Contains(report, "cannot allocate memory"),
		strings.Contains(report, "failed to allocate"),    // the race detector's words
		strings.Contains(report, "pthread_create failed"): // programs built with cgo
		return memory
	case code == exitSystem:
		return fmt.Errorf("the compiler failed: %s", report)
	case code == exitCPU, used >= limits.CPU:
		return &LimitError{fmt.Sprintf("it took more than %v of processor time", limits.CPU)}
	case killedBy(state, syscall.SIGKILL):
		return &LimitError{"the kernel killed it, usually because memory ran out"}
	}
	line, _, _ := strings.Cut(report, "\n")
	return &LimitError{fmt.Sprintf("it crashed (%v): %s", state, line)}
}

// boundedBuffer keeps the first limit bytes written to it.
type boundedBuffer struct {
	bytes.Buffer
	limit int
}

func (h *boundedBuffer) Write(data []byte) (int, error) {
	h.Buffer.Write(data[:min(len(data), h.limit-h.Len())])
	return len(data), nil
}

// Clean removes directories of children older than an hour from the cache at dir, whose hosts were killed.
func Clean(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr == nil && strings.HasPrefix(entry.Name(), tempPrefix) && time.Since(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// Package compile makes machine code of Wasm modules in a child process.
//
// A module of a few kilobytes can make wazero's compiler take gigabytes and minutes. So no other process than the child ever runs it: the
// child is this program started again, before its own main and with nothing but the module, under limits of memory, processor time, time
// and file size. It writes into a directory of its own; what it leaves there is checked and then moved into wazero's cache, from which Load
// takes it.
package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Features are what modules may use: the core specification 2.0 and tail calls.
const Features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall

// Limits bound what compiling one module may take.
type Limits struct {
	// Memory is the child's, in bytes; CPU its processor time, in whole seconds; Time the time until it must have ended.
	Memory    int64
	CPU, Time time.Duration
	// Code is how many bytes of machine code each byte of the module may become, and BaseCode how many there may be besides.
	Code, BaseCode int64
}

// DefaultLimits are some ten times what plugins of the Go compiler take, and enough for CPython (1.4 GiB, 8 s). The time is for a child that
// does nothing: on a busy machine a minute of processor time takes several.
var DefaultLimits = Limits{Memory: 2 << 30, CPU: time.Minute, Time: 10 * time.Minute, Code: 16, BaseCode: 4 << 20}

// LimitError says that the compiler did not come to an end within its limits, or failed in a way that it would again. The module is not to
// be compiled a second time.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return "the compiler was ended: " + e.Reason }

// ErrNotCached is Load's for a module of which the cache has no code that can be used.
var ErrNotCached = errors.New("no compiled code in the cache")

// Config is that of runtimes in which Load works.
func Config(cache wazero.CompilationCache) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache).WithCoreFeatures(Features).WithDebugInfoEnabled(false)
}

// workers is how many functions are compiled at once. With more than one, wazero looks at the context before each function.
const workers = 2

// Load returns the compiled code of a module that is in the runtime's cache. The context has ended from the start, so that wazero compiles
// nothing where the cache has no code.
func Load(ctx context.Context, runtime wazero.Runtime, module []byte) (wazero.CompiledModule, error) {
	ctx, cancel := context.WithCancel(experimental.WithCompilationWorkers(ctx, workers))
	cancel()
	code, err := runtime.CompileModule(ctx, module)
	switch {
	case err == nil:
		return code, nil
	case errors.Is(err, context.Canceled):
		return nil, ErrNotCached
	case strings.HasPrefix(err.Error(), "compilationcache: "):
		return nil, fmt.Errorf("%w: %v", ErrNotCached, err)
	}
	return nil, err
}

// Compiler starts the children. The zero value has DefaultLimits.
type Compiler struct {
	Limits Limits
	// Program is started instead of this one; for tests.
	Program string
}

// childName is what the child finds as its own name. It is followed by its limits as JSON.
const childName = "hako-compile"

// How the child ends, besides success and what the kernel and Go's runtime do to it. What it prints says more.
const (
	exitInvalid = 3 // the module is not valid
	exitCode    = 4 // the code is too large
	exitMemory  = 5
	exitSystem  = 6 // not the module's fault: the disk is full, for example
)

// maxReport is how much of what the child prints is read, in bytes.
const maxReport = 8 << 10

// Compile compiles a module, of which functions are its own, and puts its code into the wazero cache at dir. It returns the path of the
// file there. The error matches a *LimitError if the module must not be compiled again, and ctx.Err() if ctx ended first.
func (c *Compiler) Compile(ctx context.Context, dir string, module []byte, functions int) (path string, err error) {
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
	if err := c.run(ctx, temp, module, limits, largest); err != nil {
		return "", err
	}
	return take(ctx, temp, dir, module, functions, largest)
}

// tempPrefix starts the names of the children's directories.
const tempPrefix = ".compile-"

// order is what the child is told.
type order struct {
	Memory  int64
	CPU     uint64 // seconds
	Largest int64  // bytes of a file
}

func (c *Compiler) run(ctx context.Context, dir string, module []byte, limits Limits, largest int64) error {
	encoded, err := json.Marshal(order{limits.Memory, uint64(limits.CPU.Seconds()), largest})
	if err != nil {
		return err
	}
	program := c.Program
	if program == "" {
		if program, err = self(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	timed, cancel := context.WithTimeoutCause(ctx, limits.Time, errTime)
	defer cancel()
	report := &head{most: maxReport}
	child := exec.CommandContext(timed, program)
	child.Args = []string{childName, string(encoded)}
	child.Dir, child.Env = dir, []string{fmt.Sprintf("GOMAXPROCS=%d", workers), "GOTRACEBACK=none"}
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(module), report, report
	child.WaitDelay = time.Second
	bind(child)
	runtime.LockOSThread() // the child ends with the thread that started it
	defer runtime.UnlockOSThread()
	err = child.Run()
	kill(child)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(timed), errTime):
		return &LimitError{fmt.Sprintf("it took longer than %v", limits.Time)}
	case child.ProcessState == nil:
		return fmt.Errorf("start the compiler: %w", err)
	}
	return verdict(child.ProcessState, limits, largest, strings.TrimSpace(report.String()))
}

var errTime = errors.New("the compiler's time is up")

// verdict says what became of a child that did not succeed.
func verdict(state *os.ProcessState, limits Limits, largest int64, report string) error {
	memory := &LimitError{fmt.Sprintf("it took more than %d MiB of memory", limits.Memory>>20)}
	used := state.UserTime() + state.SystemTime()
	switch code := state.ExitCode(); {
	case code == exitInvalid:
		return fmt.Errorf("compile: %s", report)
	case code == exitCode:
		return &LimitError{fmt.Sprintf("it made more than %d MiB of code", largest>>20)}
	case code == exitMemory, strings.Contains(report, "out of memory"), strings.Contains(report, "cannot allocate memory"):
		return memory
	case code == exitSystem:
		return fmt.Errorf("the compiler failed: %s", report)
	case used >= limits.CPU*9/10: // the kernel counts by its own clock
		return &LimitError{fmt.Sprintf("it took more than %v of processor time", limits.CPU)}
	case signalled(state, syscall.SIGKILL):
		return &LimitError{"the kernel killed it, as a rule for want of memory"}
	}
	line, _, _ := strings.Cut(report, "\n")
	return &LimitError{fmt.Sprintf("it crashed (%v): %s", state, line)}
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(data []byte) (int, error) {
	h.Buffer.Write(data[:min(len(data), h.most-h.Len())])
	return len(data), nil
}

// Clean removes what compilers left in the cache at dir whose host was killed.
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

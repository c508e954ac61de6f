package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/internal/scratch"
	"github.com/hako-run/hako/internal/wholefile"
)

// codeCache is the directory of compiled code, with notes on which modules are compiled and which must not be compiled
// again.
type codeCache struct {
	code wazero.CompilationCache
	// dir contains wazero's directory of code; notes is the directory of notes on modules and of images.
	dir, notes string
	// private is set if both directories are the same temporary one, which Close removes.
	private  *scratch.Dir
	compiler compile.Compiler
	// compileSlot holds one element while a module is compiled.
	compileSlot chan struct{}
	// known caches lookups by digest: a codeSize or a *compile.LimitError.
	known sync.Map
	// loads has a *sync.Mutex for each digest, which is held while the code is loaded.
	loads sync.Map
}

// notesFolder is the directory of notes and images below the cache directory.
const notesFolder = "images"

// codeSize is the size of a module's compiled code, in bytes.
type codeSize int64

// Suffixes of notes. A note's name has the module's digest, the version of the runtime and the processor architecture.
// The note of a compiled module holds the path of its code below codeCache.dir, that of a refused module the reason.
const (
	readySuffix   = ".code"
	refusedSuffix = ".refused"
)

func newCodeCache(dir string) (*codeCache, error) {
	c := &codeCache{dir: dir, notes: filepath.Join(dir, notesFolder), compileSlot: make(chan struct{}, 1)}
	if dir == "" {
		temp, err := scratch.New("", "hako-code")
		if err != nil {
			return nil, fmt.Errorf("create the directory for compiled code: %w", err)
		}
		c.dir, c.notes, c.private = temp.Path, temp.Path, temp
	} else if err := os.MkdirAll(c.notes, 0o700); err != nil {
		return nil, fmt.Errorf("create the compilation cache: %w: "+
			"give this user write permission, or name another directory with cache or HAKO_CACHE", err)
	}
	var err error
	if c.code, err = compile.NewCache(c.dir); err != nil {
		err = fmt.Errorf("open the compilation cache %s: %w", c.dir, err)
		if c.private != nil {
			err = errors.Join(err, c.private.Remove())
		}
		return nil, err
	}
	return c, nil
}

func (c *codeCache) close() error {
	err := c.code.Close(context.Background())
	if c.private != nil {
		err = errors.Join(err, c.private.Remove())
	}
	return err
}

// lookup returns the size of a module's compiled code, or why it must not be compiled. Both are zero if nothing is
// known.
func (c *codeCache) lookup(digest [sha256.Size]byte) (codeSize, *compile.LimitError) {
	if known, ok := c.known.Load(digest); ok {
		if size, ok := known.(codeSize); ok {
			return size, nil
		}
		return 0, known.(*compile.LimitError)
	}
	if name, err := os.ReadFile(c.notePath(digest, readySuffix)); err == nil {
		if info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(string(name)))); err == nil &&
			filepath.IsLocal(string(name)) {
			now := time.Now()
			_ = os.Chtimes(c.notePath(digest, readySuffix), now, now) // for Prune
			c.known.Store(digest, codeSize(info.Size()))
			return codeSize(info.Size()), nil
		}
	}
	refusal, _ := readRefusal(c.notePath(digest, refusedSuffix))
	if refusal != nil {
		c.known.Store(digest, refusal)
	}
	return 0, refusal
}

// load returns the compiled code of a module, one runtime after the other: wazero shares the code with other runtimes
// before it has prepared the calls of each function type (1.12).
func (c *codeCache) load(ctx context.Context, runtime wazero.Runtime, module *rewrittenModule) (
	wazero.CompiledModule, error,
) {
	lock, _ := c.loads.LoadOrStore(module.Digest, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	return compile.Load(ctx, runtime, module.stub)
}

// compiled returns the size of the compiled code of all modules of a plugin, and whether all are compiled. A component
// may have none.
func (c *codeCache) compiled(guest *rewritten) (total codeSize, all bool) {
	for i := range guest.Modules {
		size, _ := c.lookup(guest.Modules[i].Digest)
		if size == 0 {
			return 0, false
		}
		total += size
	}
	return total, true
}

// refused returns the first module of a plugin that must not be compiled, and why, or nil.
func (c *codeCache) refused(guest *rewritten) (*rewrittenModule, *compile.LimitError) {
	for i := range guest.Modules {
		module := &guest.Modules[i]
		if _, refusal := c.lookup(module.Digest); refusal != nil {
			return module, refusal
		}
	}
	return nil, nil
}

// invalidate forgets that a plugin's modules are compiled, because the code of one cannot be loaded.
func (c *codeCache) invalidate(guest *rewritten) {
	for i := range guest.Modules {
		digest := guest.Modules[i].Digest
		c.known.Delete(digest)
		_ = os.Remove(c.notePath(digest, readySuffix))
	}
}

// compile compiles the modules of a plugin that are not in the cache.
func (c *codeCache) compile(ctx context.Context, guest *rewritten) error {
	var err error
	for i := range guest.Modules {
		module := &guest.Modules[i]
		if size, _ := c.lookup(module.Digest); size > 0 {
			continue
		}
		err = errors.Join(err, c.compileModule(ctx, module))
		if size, _ := c.lookup(module.Digest); size == 0 {
			break
		}
	}
	return err
}

// compileModule compiles a module in a child process, one module at a time, and writes a note of the result. If the
// note cannot be written, that error is joined to the result; it only means that the next process compiles again.
func (c *codeCache) compileModule(ctx context.Context, module *rewrittenModule) error {
	select {
	case c.compileSlot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.compileSlot }()
	path, err := c.compiler.Compile(ctx, c.dir, module.Wasm, module.stub, module.Functions)
	var refusal *compile.LimitError
	if errors.As(err, &refusal) {
		c.known.Store(module.Digest, refusal)
		note := c.notePath(module.Digest, refusedSuffix)
		return errors.Join(refusal, wholefile.Write(note, []byte(refusal.Reason+"\n")))
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(c.dir, path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	c.known.Store(module.Digest, codeSize(info.Size()))
	return wholefile.Write(c.notePath(module.Digest, readySuffix), []byte(filepath.ToSlash(name)))
}

// notePath returns the path of a note on a module.
func (c *codeCache) notePath(digest [sha256.Size]byte, suffix string) string {
	return filepath.Join(c.notes, fmt.Sprintf("%x-%s-%s%s", digest, runtimeVersion(), runtime.GOARCH, suffix))
}

// runtimeVersion is wazero's version in this program.
func runtimeVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "github.com/tetratelabs/wazero" {
			return module.Version
		}
	}
	return ""
}

// Prune removes images and notes that have not been used for 30 days, and temporary files of interrupted processes.
func (e *Engine) Prune() error {
	if e.images == "" {
		return nil
	}
	entries, err := os.ReadDir(e.images)
	for _, entry := range entries {
		info, infoErr := entry.Info()
		name := entry.Name()
		ours := slices.Contains([]string{imageSuffix, readySuffix, refusedSuffix, outlineSuffix}, filepath.Ext(name))
		if infoErr == nil && ours && time.Since(info.ModTime()) > unusedFileAge {
			err = errors.Join(err, os.Remove(filepath.Join(e.images, entry.Name())))
		}
	}
	return errors.Join(err, wholefile.RemoveLeftovers(e.images), compile.Clean(e.cache.dir))
}

// unusedFileAge is the time for which an unused image or note is kept.
const unusedFileAge = 30 * 24 * time.Hour

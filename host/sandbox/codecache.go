package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/internal/wholefile"
	"github.com/hako-run/hako/host/sandbox/compile"
)

// codeCache knows of which modules there is compiled code, and which are not to be compiled again.
type codeCache struct {
	code wazero.CompilationCache
	// dir has wazero's own folder in it, notes is that of the notes on modules.
	dir, notes string
	// private says that both go when the engine is closed.
	private  bool
	compiler compile.Compiler
	// turn is held while a module is compiled.
	turn chan struct{}
	// known has what this process has learnt, by digest: a compiled or a refusal.
	known sync.Map
}

// compiled is the size of a module's code, in bytes.
type compiled int64

// Notes are files named after the module, the version of the runtime and the processor. That of compiled code holds the name of the file
// below the cache's directory, that of a refusal the reason.
const (
	readySuffix   = ".compiled"
	refusedSuffix = ".refused"
)

func newCodeCache(dir string) (*codeCache, error) {
	c := &codeCache{dir: dir, notes: filepath.Join(dir, "images"), turn: make(chan struct{}, 1)}
	if dir == "" {
		temp, err := os.MkdirTemp("", "hako-code-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for compiled code: %w", err)
		}
		c.dir, c.notes, c.private = temp, temp, true
	} else if err := os.MkdirAll(c.notes, 0o700); err != nil {
		return nil, fmt.Errorf("make the compilation cache: %w: give this user write permission, or name another directory with cache or HAKO_CACHE", err)
	}
	var err error
	if c.code, err = wazero.NewCompilationCacheWithDir(c.dir); err != nil {
		return nil, fmt.Errorf("open the compilation cache %s: %w", c.dir, err)
	}
	return c, nil
}

func (c *codeCache) close() error {
	err := c.code.Close(context.Background())
	if c.private {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// find returns how large the compiled code of a module is, or why the module is not to be compiled. Both are zero where nothing is known.
func (c *codeCache) find(digest [sha256.Size]byte) (compiled, *compile.LimitError) {
	if known, ok := c.known.Load(digest); ok {
		if size, ok := known.(compiled); ok {
			return size, nil
		}
		return 0, known.(*compile.LimitError)
	}
	if name, err := os.ReadFile(c.note(digest, readySuffix)); err == nil {
		if info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(string(name)))); err == nil && filepath.IsLocal(string(name)) {
			now := time.Now()
			_ = os.Chtimes(c.note(digest, readySuffix), now, now) // for Prune
			c.known.Store(digest, compiled(info.Size()))
			return compiled(info.Size()), nil
		}
	}
	if reason, err := os.ReadFile(c.note(digest, refusedSuffix)); err == nil {
		refusal := &compile.LimitError{Reason: strings.TrimSpace(string(reason))}
		c.known.Store(digest, refusal)
		return 0, refusal
	}
	return 0, nil
}

// forget is told that the code of a module cannot be loaded.
func (c *codeCache) forget(digest [sha256.Size]byte) {
	c.known.Delete(digest)
	_ = os.Remove(c.note(digest, readySuffix))
}

// compile compiles a module in a child process, one after the other, and notes what came of it. An error that cannot be written down is
// joined to the result where there is one, and is of no consequence but for the next process.
func (c *codeCache) compile(ctx context.Context, module *rewritten) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	path, err := c.compiler.Compile(ctx, c.dir, module.Wasm, module.Functions)
	var refusal *compile.LimitError
	if errors.As(err, &refusal) {
		c.known.Store(module.digest, refusal)
		return errors.Join(refusal, wholefile.Write(c.note(module.digest, refusedSuffix), []byte(refusal.Reason+"\n")))
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
	c.known.Store(module.digest, compiled(info.Size()))
	return wholefile.Write(c.note(module.digest, readySuffix), []byte(filepath.ToSlash(name)))
}

// note is the path of a note on a module.
func (c *codeCache) note(digest [sha256.Size]byte, suffix string) string {
	return filepath.Join(c.notes, fmt.Sprintf("%x-%s-%s%s", digest, runtimeVersion(), runtime.GOARCH, suffix))
}

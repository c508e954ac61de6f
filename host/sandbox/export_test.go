package sandbox

import (
	"crypto/sha256"

	"github.com/hako-run/hako/host/sandbox/compile"
)

// Decode, DecodeImage and Written are for tests.
var (
	Decode       = decode
	Written      = written
	ReadingBytes = readingBytes
	Weigh        = weigh
)

// DecodeImage reports whether data is an image with this key, of 2 globals and at most 1 MiB.
func DecodeImage(data []byte, key [sha256.Size]byte) error {
	image, err := decodeImage(data, key, 2, 1<<20)
	if err != nil {
		return err
	}
	return image.memory.close()
}

// EncodeImage makes the file of an image.
func EncodeImage(memory []byte, globals []uint64, key [sha256.Size]byte) []byte {
	m, err := newImageMemory(len(memory), written(memory))
	if err != nil {
		panic(err)
	}
	defer m.close()
	return encodeImage(&image{memory: m, globals: globals}, key)
}

// Used is how much of its memory budget the engine has given out.
func (e *Engine) Used() int64 { return e.budget.used.Load() }

// Unload unloads the plugin as if it had not been called for long.
func (p *Plugin) Unload() bool { return p.unload() }

// Idle is how many instances wait for a call.
func (p *Plugin) Idle() int {
	code, ok := p.loaded()
	if !ok {
		return 0
	}
	code.pool.mu.Lock()
	defer code.pool.mu.Unlock()
	return len(code.pool.idle)
}

// HoldCompiler keeps plugins from being compiled until the returned function is called.
func (e *Engine) HoldCompiler() (release func()) {
	e.cache.turn <- struct{}{}
	return func() { <-e.cache.turn }
}

// LimitCompiler bounds what compiling a module may take.
func (e *Engine) LimitCompiler(limits compile.Limits) { e.cache.compiler.Limits = limits }

// HurryClose has Close of the engine's plugins wait for no compiler.
func (e *Engine) HurryClose() { e.closeGrace = 0 }

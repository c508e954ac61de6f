package sandbox

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/hako-run/hako/host/sandbox/compile"
)

// Internals for the tests of package sandbox_test.
var (
	Decode       = decode
	DecodeText   = decodeText
	Encode       = encode
	NonZeroRuns  = nonZeroRuns
	ReadingBytes = readingBytes
	Weigh        = deliveryBytes
)

// DecodeImage decodes an image file with this key, 2 globals and at most 16 MiB.
func DecodeImage(data []byte, key [sha256.Size]byte) error {
	image, err := decodeImage(bytes.NewReader(data), key, 2, 1, 16<<20)
	if err != nil {
		return err
	}
	return image.close()
}

// EncodeImage returns an image file.
func EncodeImage(memory []byte, globals []uint64, key [sha256.Size]byte) []byte {
	m, err := newImageMemory(len(memory), nonZeroRuns(memory))
	if err != nil {
		panic(err)
	}
	defer m.close()
	return encodeImage(&image{memories: []*imageMemory{m}, globals: globals}, key)
}

// Used returns the used part of the memory budget, in bytes.
func (e *Engine) Used() int64 { return e.budget.used.Load() }

// Unload unloads the plugin as if it had not been called for long.
func (p *Plugin) Unload() bool { return p.unload() }

// Idle returns the number of idle instances.
func (p *Plugin) Idle() int {
	code, ok := p.tryLoadedCode()
	if !ok {
		return 0
	}
	code.pool.mu.Lock()
	defer code.pool.mu.Unlock()
	return len(code.pool.idle)
}

// StartData returns the data segments that a start of the plugin's module would copy.
func (p *Plugin) StartData() (segments int, err error) {
	code, ok := p.tryLoadedCode()
	if !ok {
		return 0, nil
	}
	data, err := code.data.load(p)
	for _, list := range data {
		segments += len(list)
	}
	return segments, err
}

// KeptData reports whether the plugin keeps data segments for further starts.
func (p *Plugin) KeptData() bool {
	code, ok := p.tryLoadedCode()
	return ok && len(code.data.segments) > 0
}

// HoldCompiler blocks compilations until release is called.
func (e *Engine) HoldCompiler() (release func()) {
	e.cache.compileSlot <- struct{}{}
	return func() { <-e.cache.compileSlot }
}

// LimitCompiler sets the limits of compilations.
func (e *Engine) LimitCompiler(limits compile.Limits) { e.cache.compiler.Limits = limits }

// CompileGrace returns how long Plugin.Close waits for a running compilation.
func (e *Engine) CompileGrace() time.Duration { return e.closeGrace }

// HurryClose makes Plugin.Close cancel running compilations at once.
func (e *Engine) HurryClose() { e.closeGrace = 0 }

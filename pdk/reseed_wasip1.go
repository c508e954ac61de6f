package pdk

import (
	"math/rand/v2"
	"unsafe"
)

// Every call starts from the same image, in which Go's generator behind math/rand is already seeded: all calls would
// draw the same numbers. So each call reseeds the generator with WASI's random_get.
//
// The generator is a field of a runtime structure without an accessible name. findGenerator finds it in memory by the
// numbers that it has just returned, which precede a counter. internal/chacha8rand has had this form since Go 1.22. The
// seeds of package maphash, map iteration and the like stay the same: they are no security boundary between calls of
// one plugin.
type generator struct {
	buffer  [32]uint64
	seed    [4]uint64
	next, n uint32
	counter uint32
}

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(p unsafe.Pointer, length uint32) uint32

var runtimeGenerator = findGenerator()

// findGenerator searches the static data and the start of the heap, where the runtime's first thread is.
func findGenerator() *generator {
	const searched = 4 << 20
	want := rand.Uint64()
	for address := uintptr(8); address < searched; address += 8 {
		if *(*uint64)(unsafe.Add(nil, address)) != want {
			continue
		}
		for index := uint32(0); index < 32 && uintptr(index)*8 < address; index++ {
			g := (*generator)(unsafe.Add(nil, address-uintptr(index)*8))
			if g.next == index+1 && g.n >= g.next && g.n <= 32 && g.counter < 16 && g.verify() {
				return g
			}
		}
	}
	return nil
}

// verify checks that the generator returns the numbers in its buffer.
func (g *generator) verify() bool {
	for range 40 {
		if g.next >= g.n {
			_ = rand.Uint64() // refills
			continue
		}
		expected := g.buffer[g.next]
		if rand.Uint64() != expected {
			return false
		}
	}
	return true
}

// reseed makes the generator use a new seed from the next number on.
func reseed() {
	if g := runtimeGenerator; g != nil && randomGet(unsafe.Pointer(&g.seed), uint32(unsafe.Sizeof(g.seed))) == 0 {
		g.next, g.n, g.counter = 32, 32, 0
	}
}

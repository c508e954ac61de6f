package pdk

import (
	"math/rand/v2"
	"unsafe"
)

// Every call starts from one image of memory, in which Go's generator behind math/rand has been seeded already: without more,
// all calls would draw the same numbers. So each call gives it a new seed, from random_get of WASI.
//
// The generator is a field deep inside the runtime, without a name that a program may use. It is found by what it holds: numbers
// that it has just given out, in front of a counter that says so. internal/chacha8rand has had this form since Go 1.22, and
// package maphash, the order of map iteration and the like are not security boundaries between calls of one plugin.
type generator struct {
	buffer  [32]uint64
	seed    [4]uint64
	next, n uint32
	counter uint32
}

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(p unsafe.Pointer, length uint32) uint32

var runtimeGenerator = findGenerator()

// findGenerator looks through the static data and the start of the heap, where the runtime's first thread lives.
func findGenerator() *generator {
	const searched = 4 << 20
	want := rand.Uint64()
	for address := uintptr(8); address < searched; address += 8 {
		if *(*uint64)(unsafe.Add(nil, address)) != want {
			continue
		}
		for index := uint32(0); index < 32 && uintptr(index)*8 < address; index++ {
			g := (*generator)(unsafe.Add(nil, address-uintptr(index)*8))
			if g.next == index+1 && g.n >= g.next && g.n <= 32 && g.counter < 16 && g.proven() {
				return g
			}
		}
	}
	return nil
}

// proven holds what the generator says it gives next against what it gives.
func (g *generator) proven() bool {
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

// reseed makes the next number come from a new seed.
func reseed() {
	if g := runtimeGenerator; g != nil && randomGet(unsafe.Pointer(&g.seed), uint32(unsafe.Sizeof(g.seed))) == 0 {
		g.next, g.n, g.counter = 32, 32, 0
	}
}

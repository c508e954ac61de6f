package sandbox

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestRestore writes to random places of a memory that grows at random, call after call, and holds that it is the image again after each.
// Nothing runs beside it, so that there are calls without a page fault.
func TestRestore(t *testing.T) {
	const size, limit = 32 * page, 256 * page
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, size)
	for at := range want[:size/2] {
		want[at] = byte(at >> 8)
	}
	image, err := newImageMemory(size, written(want))
	if err != nil {
		t.Fatal(err)
	}
	defer image.close()
	b := &budget{limit: limit}
	memory := &linearMemory{limit: limit, budget: b}
	if memory.region, err = reserve(limit); err != nil {
		t.Fatal(err)
	}
	defer memory.Free()
	memory.Reallocate(size)
	if err := memory.overlay(image); err != nil {
		t.Fatal(err)
	}
	for call := range 300 {
		memory.begin()
		data := memory.bytes(size)
		if random.IntN(4) == 0 {
			data = memory.Reallocate(size + random.Uint64N(limit-size))
		}
		writes := 3
		if random.IntN(20) == 0 {
			writes = 2000 // so that there is a surplus of private pages later
		}
		for range writes {
			// Some places again and again, others once.
			data[random.IntN(len(data))], data[random.IntN(8)*page] = byte(call), byte(call)
		}
		memory.end()
		if !memory.takeBack(size) {
			t.Fatal("the growth cannot be taken back")
		}
		memory.restore(image, memory.open)
		if !bytes.Equal(memory.bytes(size), want) {
			t.Fatalf("after call %d the memory is not the image", call)
		}
		if rest := memory.bytes(memory.open)[size:]; len(bytes.Trim(rest, "\x00")) > 0 {
			t.Fatalf("after call %d what it had grown by is not zero", call)
		}
	}
	if kept := memory.open - size; kept > keptGrowth || b.used.Load() != int64(memory.open) {
		t.Errorf("%d bytes stay, of which %d are paid", kept, b.used.Load())
	}
}

package sandbox

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestRestore writes to random places of a memory that grows at random and checks that each restore yields the image.
// It runs without parallel tests, so that some calls cause no page fault.
func TestRestore(t *testing.T) {
	const size, limit = 32 * page, 256 * page
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, size)
	for at := range want[:size/2] {
		want[at] = byte(at >> 8)
	}
	image, err := newImageMemory(size, nonZeroRuns(want))
	if err != nil {
		t.Fatal(err)
	}
	defer image.close()
	b := &budget{limit: limit}
	memories := &memories{limit: limit, budget: b}
	defer memories.free()
	memory, err := memories.add(nil)
	if err != nil {
		t.Fatal(err)
	}
	memory.Reallocate(size)
	if err := memory.mapImage(image); err != nil {
		t.Fatal(err)
	}
	for call := range 300 {
		memories.beginCall()
		data := memory.bytes(size)
		if random.IntN(4) == 0 {
			data = memory.Reallocate(size + random.Uint64N(limit-size))
		}
		writes := 3
		if random.IntN(20) == 0 {
			writes = 2000 // makes restore discard private pages later
		}
		for range writes {
			// Write to some places repeatedly, to others once.
			data[random.IntN(len(data))], data[random.IntN(8)*page] = byte(call), byte(call)
		}
		memories.endCall()
		if !memory.decommitBeyond(size) {
			t.Fatal("the growth cannot be taken back")
		}
		memory.restore(image, memory.committed)
		if !bytes.Equal(memory.bytes(size), want) {
			t.Fatalf("after call %d the memory is not the image", call)
		}
		if rest := memory.bytes(memory.committed)[size:]; len(bytes.Trim(rest, "\x00")) > 0 {
			t.Fatalf("after call %d what it had grown by is not zero", call)
		}
	}
	if kept := memory.committed - size; kept > keptGrowth || b.used.Load() != int64(memory.committed) {
		t.Errorf("%d bytes stay, of which %d are paid", kept, b.used.Load())
	}
}

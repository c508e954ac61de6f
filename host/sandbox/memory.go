package sandbox

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// linearMemory backs the memory of one instance. It grows up to a limit and remembers that it refused to grow further, which the
// guest may report in many ways. The part that depends on the platform is in region.
type linearMemory struct {
	region
	limit uint64
	size  uint64
	// open is how much is memory, though the guest may see less of it.
	open    uint64
	refused bool
	// budget is what the memory is taken from: paid bytes so far. starved says that it had no more.
	budget  *budget
	paid    uint64
	starved bool
}

// Reallocate gives the guest size bytes, or nil if that passes the limit. The bytes stay where they are.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if !m.pay(size) {
		m.starved = true
		return nil
	}
	if size > m.open {
		if m.extend(m.open, size) != nil {
			m.refused = true
			return nil
		}
		m.open = size
	}
	m.size = max(m.size, size)
	return m.bytes(size)
}

func (m *linearMemory) pay(size uint64) bool {
	if size > m.paid {
		if !m.budget.take(int64(size - m.paid)) {
			return false
		}
		m.paid = size
	}
	return true
}

// refund gives back to the budget what is paid beyond size.
func (m *linearMemory) refund(size uint64) {
	if m.paid > size {
		m.budget.give(int64(m.paid - size))
		m.paid = size
	}
}

// Free gives the memory back. It may be called twice.
func (m *linearMemory) Free() {
	m.release()
	m.refund(0)
}

// shrink takes back what a guest has grown its memory by, down to size. It reports false if the runtime has changed too much for
// that; then the instance cannot be used again. Some of it stays memory, for the next call that grows, and has to be cleared.
//
// WebAssembly has no such operation and the runtime offers none, but a guest is not running here, and the next call starts from an
// image that has no memory beyond size. The runtime's memory instance has the field Buffer; growing it by one page from one less
// makes the runtime take notice of its new length.
func (m *linearMemory) shrink(memory api.Memory, size uint64) bool {
	if m.size == size {
		return true
	}
	buffer := reflect.ValueOf(memory).Elem().FieldByName("Buffer")
	if !buffer.IsValid() || !buffer.CanSet() || buffer.Type() != reflect.TypeFor[[]byte]() || size < page {
		return false
	}
	if !m.takeBack(size) {
		return false
	}
	buffer.SetBytes(m.bytes(size - page))
	_, ok := memory.Grow(1)
	return ok && uint64(memory.Size()) == size
}

// takeBack makes the memory of this size, and gives back most of what is beyond.
func (m *linearMemory) takeBack(size uint64) bool {
	if kept := size + keptGrowth; m.open > kept {
		if m.retract(kept, m.open) != nil {
			return false
		}
		m.open = kept
		m.refund(kept)
	}
	m.size = size
	return true
}

// keptGrowth is how much of what a guest has grown by stays memory after the call, in bytes. A page that is given back costs the next
// call a fault.
const keptGrowth = 8 << 20

// page is the size of a Wasm page, in bytes.
const page = 64 << 10

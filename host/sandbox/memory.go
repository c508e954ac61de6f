package sandbox

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// linearMemory backs the memory of one instance. It grows up to a limit and remembers that it refused to grow further, which the
// guest may report in many ways. The part that depends on the platform is in region.
type linearMemory struct {
	region
	limit   uint64
	size    uint64
	refused bool
}

// Reallocate gives the guest size bytes, or nil if that passes the limit. The bytes stay where they are.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit || m.extend(m.size, size) != nil {
		m.refused = true
		return nil
	}
	m.size = max(m.size, size)
	return m.bytes(size)
}

// Free gives the memory back.
func (m *linearMemory) Free() { m.release() }

// shrink takes back what a guest has grown its memory by, down to size. It reports false if the runtime has changed too much for
// that; then the instance cannot be used again.
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
	if m.retract(size, m.size) != nil {
		return false
	}
	m.size = size
	buffer.SetBytes(m.bytes(size - page))
	_, ok := memory.Grow(1)
	return ok && uint64(memory.Size()) == size
}

// page is the size of a Wasm page, in bytes.
const page = 64 << 10

package sandbox

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// memories are the linear memories of one instance. The limit and the budget hold for their sum.
type memories struct {
	list  []*linearMemory
	limit uint64
	// spare counts the bytes reserved in budget that no memory uses yet.
	budget  *budget
	spare   uint64
	refused refusedGrowth
	faultWatch
}

// refusedGrowth says what the guest tried to grow beyond during a call: guests report that in many ways.
type refusedGrowth struct{ limit, budget bool }

// add adds a memory that starts with the data of the segments.
func (s *memories) add(initial []rewrite.Segment) (*linearMemory, error) {
	reserved, err := reserve(s.limit)
	if err != nil {
		return nil, err
	}
	m := &linearMemory{region: reserved, shared: s, initial: initial}
	s.list = append(s.list, m)
	return m, nil
}

// size is the size of all memories, in bytes.
func (s *memories) size() (total uint64) {
	for _, m := range s.list {
		total += m.size
	}
	return total
}

// beginCall is called before each call.
func (s *memories) beginCall() {
	s.refused = refusedGrowth{}
	s.faultWatch.begin()
}

// endCall is called right after the guest has returned: delivering the answer causes page faults of its own.
func (s *memories) endCall() {
	if s.faulted() {
		for _, m := range s.list {
			m.markFaulted()
		}
	}
}

// free releases the memories and their reservations. It may be called twice.
func (s *memories) free() {
	for _, m := range s.list {
		m.Free()
	}
	if s.spare > 0 {
		s.budget.release(int64(s.spare))
		s.spare = 0
	}
}

// linearMemory backs one memory of an instance and implements experimental.LinearMemory. The part that depends on the
// platform is region.
type linearMemory struct {
	region
	shared *memories
	// memory is the runtime's view of it, once it has been instantiated.
	memory api.Memory
	size   uint64
	// committed is the size of the accessible memory in bytes. The guest may see less.
	committed uint64
	// initial is copied to the memory when it is allocated.
	initial []rewrite.Segment
	// reserved counts the bytes reserved in the budget.
	reserved uint64
}

// Reallocate grows the memory to size bytes in place. It returns nil if that exceeds the limit or the budget.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if more := size - min(size, m.size); more > m.shared.limit-m.shared.size() {
		m.shared.refused.limit = true
		return nil
	}
	if !m.reserveBudget(size) {
		m.shared.refused.budget = true
		return nil
	}
	if size > m.committed {
		if m.commit(m.committed, size) != nil {
			m.shared.refused.limit = true
			return nil
		}
		m.committed = size
	}
	m.size = max(m.size, size)
	memory := m.bytes(size)
	for _, segment := range m.initial {
		copy(memory[segment.Offset:], segment.Bytes)
	}
	m.initial = nil
	return memory
}

func (m *linearMemory) reserveBudget(size uint64) bool {
	if size <= m.reserved {
		return true
	}
	more := size - m.reserved
	spare := min(more, m.shared.spare)
	if more > spare && !m.shared.budget.reserve(int64(more-spare)) {
		return false
	}
	m.shared.spare -= spare
	m.reserved = size
	return true
}

// releaseBudget releases the reservation beyond size.
func (m *linearMemory) releaseBudget(size uint64) {
	if m.reserved > size {
		m.shared.budget.release(int64(m.reserved - size))
		m.reserved = size
	}
}

// Free releases the memory. It may be called twice.
func (m *linearMemory) Free() {
	m.release()
	m.releaseBudget(0)
}

// shrink undoes the growth of a call, down to size. It reports false if this version of wazero does not allow it; the
// instance must then be discarded. Up to keptGrowth bytes stay committed for the next call that grows; restore clears
// them.
//
// WebAssembly has no such operation, and wazero offers none. Between calls it is safe: no guest code runs, and the next
// call starts from an image without memory beyond size. wazero's memory instance has the field Buffer; setting it to
// one page less than size and growing by one page updates wazero's copies of the length.
func (m *linearMemory) shrink(size uint64) bool {
	if m.size == size {
		return true
	}
	buffer := reflect.ValueOf(m.memory).Elem().FieldByName("Buffer")
	if !buffer.IsValid() || !buffer.CanSet() || buffer.Type() != reflect.TypeFor[[]byte]() || size < page {
		return false
	}
	if !m.decommitBeyond(size) {
		return false
	}
	buffer.SetBytes(m.bytes(size - page))
	_, ok := m.memory.Grow(1)
	return ok && uint64(m.memory.Size()) == size
}

// decommitBeyond sets the size and decommits the memory beyond size and keptGrowth.
func (m *linearMemory) decommitBeyond(size uint64) bool {
	if kept := size + keptGrowth; m.committed > kept {
		if m.decommit(kept, m.committed) != nil {
			return false
		}
		m.committed = kept
		m.releaseBudget(kept)
	}
	m.size = size
	return true
}

// keptGrowth bounds the grown memory that stays committed after a call, in bytes. Each decommitted page costs the next
// call a page fault.
const keptGrowth = 8 << 20

// page is the size of a Wasm page, in bytes.
const page = 64 << 10

package sandbox

// linearMemory backs the memory of one instance. It grows up to a limit and remembers that it refused to grow further,
// which the guest may report in many ways.
type linearMemory struct {
	limit   uint64
	buffer  []byte
	refused bool
}

// Reallocate gives the guest size bytes, or nil if that passes the limit.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size > uint64(cap(m.buffer)) {
		grown := make([]byte, size, min(m.limit, max(size, 2*uint64(cap(m.buffer)))))
		copy(grown, m.buffer)
		m.buffer = grown
	}
	m.buffer = m.buffer[:size]
	return m.buffer
}

// Free drops the memory.
func (m *linearMemory) Free() { m.buffer = nil }

// Package brokertest provides the Memory of a guest for tests of brokers, without a guest.
package brokertest

// Memory is a guest's linear memory. It implements broker.Memory, with the views and the bounds that wazero's has.
type Memory []byte

// Read returns a view of length bytes at offset. It reports false if they are not all within the memory.
func (m Memory) Read(offset, length uint32) ([]byte, bool) {
	if uint64(offset)+uint64(length) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length], true
}

// Write copies data to offset. It reports false, and changes nothing, if there is no room for all of it.
func (m Memory) Write(offset uint32, data []byte) bool {
	view, ok := m.Read(offset, uint32(len(data)))
	copy(view, data)
	return ok
}

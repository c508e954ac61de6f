package extism

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// kernel holds the blocks of bytes that guest and host exchange under the Extism ABI. Guests access them only through
// host functions. There is no metadata between blocks that a guest could overwrite.
//
// Offsets are not reused within a call. An access outside of all blocks panics with an *accessError, an allocation
// beyond the limit with limitErr; both trap the guest.
type kernel struct {
	// limit bounds the bytes of all blocks, used counts them.
	limit, used int64
	limitErr    error
	// reserve charges bytes before they are allocated; nil charges nothing. reserved counts the charged bytes.
	reserve  func(n int64) error
	reserved int64
	next     uint64
	// blocks are ordered by offset. Freed blocks have no data until sweep removes them.
	blocks []block
	freed  int
	// recent is the index of the block accessed last: most accesses go through a block from start to end.
	recent int

	input   span
	output  result
	failure result
}

// result is output of the guest: a view of a block that stays valid after the guest has freed the block.
type result struct {
	span
	data []byte
}

// block has length bytes. data is padded with zeros to a multiple of eight bytes, because guests read in steps of
// eight.
type block struct {
	offset, length uint64
	data           []byte
}

type span struct{ offset, length uint64 }

const (
	// firstOffset is the offset of the first block; zero means "none" in the ABI.
	firstOffset = 16
	// blockCost is charged for each block besides its bytes.
	blockCost = 64
)

// accessError is the trap for an access outside of all blocks.
type accessError struct {
	function string
	offset   uint64
}

func (e *accessError) Error() string {
	return fmt.Sprintf("%s: offset %d is in no block of the Extism memory", e.function, e.offset)
}

// reset frees all blocks.
func (k *kernel) reset() {
	*k = kernel{limit: k.limit, limitErr: k.limitErr, reserve: k.reserve, reserved: k.reserved, next: firstOffset}
}

// alloc allocates a block of n zero bytes and returns its offset, or zero if n is zero.
func (k *kernel) alloc(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	if err := k.reserveBlock(n); err != nil {
		panic(err)
	}
	offset := k.next
	k.blocks = append(k.blocks, block{offset, n, make([]byte, padded(n))})
	k.used += cost(n)
	k.next += padded(n) + 8 // a gap, to detect overruns
	return offset
}

// reserveBlock checks the limit for a block of n bytes and charges it.
func (k *kernel) reserveBlock(n uint64) error {
	if n > uint64(k.limit) || k.used+cost(n) > k.limit {
		return k.limitErr
	}
	if more := k.used + cost(n) - k.reserved; more > 0 && k.reserve != nil {
		if err := k.reserve(more); err != nil {
			return err
		}
		k.reserved += more
	}
	return nil
}

func padded(n uint64) uint64 { return (n + 7) &^ 7 }

func cost(n uint64) int64 { return int64(padded(n)) + blockCost }

// write allocates a block with data and returns its offset, or zero for no data.
func (k *kernel) write(data []byte) uint64 {
	offset := k.alloc(uint64(len(data)))
	if offset != 0 {
		copy(k.blocks[len(k.blocks)-1].data, data)
	}
	return offset
}

// blockContaining returns the block with the byte at offset, or nil.
func (k *kernel) blockContaining(offset uint64) *block {
	if k.recent < len(k.blocks) && k.blocks[k.recent].holds(offset) {
		return &k.blocks[k.recent]
	}
	i, exact := slices.BinarySearchFunc(k.blocks, offset, func(b block, offset uint64) int {
		if b.offset < offset {
			return -1
		}
		return int(min(b.offset-offset, 1))
	})
	if !exact {
		i--
	}
	if i < 0 || !k.blocks[i].holds(offset) {
		return nil
	}
	k.recent = i
	return &k.blocks[i]
}

func (b *block) holds(offset uint64) bool { return offset-b.offset < uint64(len(b.data)) }

// load reads size bytes, little-endian. Bytes beyond the end of the block are zero.
func (k *kernel) load(function string, offset uint64, size int) uint64 {
	b := k.blockContaining(offset)
	if b == nil {
		panic(&accessError{function, offset})
	}
	rest := b.data[offset-b.offset:]
	if size == 1 {
		return uint64(rest[0])
	}
	if len(rest) >= 8 {
		return binary.LittleEndian.Uint64(rest)
	}
	var last [8]byte
	copy(last[:], rest)
	return binary.LittleEndian.Uint64(last[:])
}

// store writes the lowest size bytes of value.
func (k *kernel) store(function string, offset, value uint64, size int) {
	b := k.blockContaining(offset)
	if b == nil || offset-b.offset+uint64(size) > uint64(len(b.data)) {
		panic(&accessError{function, offset})
	}
	at := b.data[offset-b.offset:]
	if size == 1 {
		at[0] = byte(value)
		return
	}
	binary.LittleEndian.PutUint64(at, value)
}

// blockAt returns the block that starts at offset, or nil.
func (k *kernel) blockAt(offset uint64) *block {
	if b := k.blockContaining(offset); b != nil && b.offset == offset {
		return b
	}
	return nil
}

func (k *kernel) length(offset uint64) uint64 {
	if b := k.blockAt(offset); b != nil {
		return b.length
	}
	return 0
}

// free frees the block at offset, if there is one.
func (k *kernel) free(offset uint64) {
	b := k.blockAt(offset)
	if b == nil {
		return
	}
	k.used -= int64(len(b.data)) // blockCost is released by sweep
	b.data = nil
	if k.freed++; k.freed > len(k.blocks)/2 {
		k.sweep()
	}
}

func (k *kernel) sweep() {
	k.used -= int64(k.freed) * blockCost
	k.blocks = slices.DeleteFunc(k.blocks, func(b block) bool { return b.data == nil })
	k.freed, k.recent = 0, 0
}

// bytes returns a view of the block at offset; nil for offset zero.
func (k *kernel) bytes(function string, offset uint64) []byte {
	if offset == 0 {
		return nil
	}
	b := k.blockAt(offset)
	if b == nil {
		panic(&accessError{function, offset})
	}
	return b.data[:b.length]
}

// view returns a view of bytes within a block.
func (k *kernel) view(function string, s span) result {
	if s.length == 0 {
		return result{span: s}
	}
	b := k.blockContaining(s.offset)
	if b == nil || s.length > b.length || s.offset-b.offset > b.length-s.length {
		panic(&accessError{function, s.offset})
	}
	start := s.offset - b.offset
	return result{s, b.data[start : start+s.length]}
}

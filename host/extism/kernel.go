package extism

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// kernel is the memory in which guest and host exchange blocks of bytes under the Extism ABI. It is apart from the guest's own and
// only reached through host functions. Nothing about the blocks is stored between them, so a guest that writes where it should not
// harms nobody.
//
// Offsets are never used twice in a call. An access outside of all blocks panics with an *accessError, and one allocation too many
// with the error full; both trap the guest.
type kernel struct {
	// limit bounds the bytes of all blocks, used counts them.
	limit, used int64
	full        error
	// hold charges for bytes before they are there; held are those that it was called for. Nil charges nothing.
	hold func(n int64) error
	held int64
	next uint64
	// blocks are in the order of their offsets; those given back have no data until they are swept out.
	blocks []block
	freed  int
	// recent is the index of the block that was found last: most accesses go through a block from start to end.
	recent int

	input   span
	output  result
	failure result
}

// result is what a guest gives back: a view of a block, which stays even if the guest then gives the block back.
type result struct {
	span
	data []byte
}

// block holds length bytes. data is padded with zeros to a multiple of eight bytes, because guests read in steps of eight.
type block struct {
	offset, length uint64
	data           []byte
}

type span struct{ offset, length uint64 }

const (
	// firstOffset is that of the first block; zero means "none" in the ABI.
	firstOffset = 16
	// blockCost is what a block counts besides its bytes.
	blockCost = 64
)

// accessError is the trap of a guest that named bytes outside of all blocks.
type accessError struct {
	function string
	offset   uint64
}

func (e *accessError) Error() string {
	return fmt.Sprintf("%s: offset %d is in no block of the Extism memory", e.function, e.offset)
}

// reset gives all blocks back.
func (k *kernel) reset() {
	*k = kernel{limit: k.limit, full: k.full, hold: k.hold, held: k.held, next: firstOffset}
}

// alloc makes a block of n zero bytes and returns its offset; zero for no bytes.
func (k *kernel) alloc(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	if err := k.room(n); err != nil {
		panic(err)
	}
	offset := k.next
	k.blocks = append(k.blocks, block{offset, n, make([]byte, padded(n))})
	k.used += cost(n)
	k.next += padded(n) + 8 // a gap, so that running over the end is noticed
	return offset
}

// room makes sure that there is memory for a block of n bytes.
func (k *kernel) room(n uint64) error {
	if n > uint64(k.limit) || k.used+cost(n) > k.limit {
		return k.full
	}
	if more := k.used + cost(n) - k.held; more > 0 && k.hold != nil {
		if err := k.hold(more); err != nil {
			return err
		}
		k.held += more
	}
	return nil
}

func padded(n uint64) uint64 { return (n + 7) &^ 7 }

func cost(n uint64) int64 { return int64(padded(n)) + blockCost }

// write makes a block of data and returns its offset; zero for no data.
func (k *kernel) write(data []byte) uint64 {
	offset := k.alloc(uint64(len(data)))
	if offset != 0 {
		copy(k.blocks[len(k.blocks)-1].data, data)
	}
	return offset
}

// find returns the block that holds the byte at offset, or nil.
func (k *kernel) find(offset uint64) *block {
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

// load reads size bytes, little-endian. Those past the end of a block are zero.
func (k *kernel) load(function string, offset uint64, size int) uint64 {
	b := k.find(offset)
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
	b := k.find(offset)
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

// at returns the block that starts at offset, or nil.
func (k *kernel) at(offset uint64) *block {
	if b := k.find(offset); b != nil && b.offset == offset {
		return b
	}
	return nil
}

func (k *kernel) length(offset uint64) uint64 {
	if b := k.at(offset); b != nil {
		return b.length
	}
	return 0
}

// free gives a block back. What is no block is left alone.
func (k *kernel) free(offset uint64) {
	b := k.at(offset)
	if b == nil {
		return
	}
	k.used -= int64(len(b.data)) // the entry still costs
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

// bytes returns the block at offset as a view; nil for offset zero.
func (k *kernel) bytes(function string, offset uint64) []byte {
	if offset == 0 {
		return nil
	}
	b := k.at(offset)
	if b == nil {
		panic(&accessError{function, offset})
	}
	return b.data[:b.length]
}

// part returns the view of bytes that need not be a whole block.
func (k *kernel) part(function string, s span) result {
	if s.length == 0 {
		return result{span: s}
	}
	b := k.find(s.offset)
	if b == nil || s.length > b.length || s.offset-b.offset > b.length-s.length {
		panic(&accessError{function, s.offset})
	}
	start := s.offset - b.offset
	return result{s, b.data[start : start+s.length]}
}

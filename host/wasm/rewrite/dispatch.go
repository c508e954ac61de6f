package rewrite

import "github.com/hako-run/hako/host/wasm/wasmbin"

// The Go compiler has no structured control flow. It compiles a function to one loop around a switch over numbered
// parts of its code. Each jump, also a forward one, sets the number of a part and branches to the head of the loop:
//
// 	loop
// 	  block … block
// 	    local.get $part
// 	    br_table …
// 	  end … part 0 …
// 	  end … part 1 … i32.const 3, local.set $part, br to the loop …
// 	  …
//
// A forward jump can instead leave the block at whose end its part begins, which is where the switch would lead. Such a
// jump needs no count and is faster. Only the function's entry and true loops remain at the head.

// dispatch is the switch at the head of a function's loop, and the position in the code after it.
type dispatch struct {
	// depth counts the open blocks in the loop, open those of them that belong to the switch.
	depth, open int
	// local is the variable with the number of the part. targets maps each number to the block whose end is the part,
	// counted from the outermost, which is 1; zero is the loop.
	local   uint32
	targets []int
}

// readDispatch reads a function for which beginsWithLoop holds, up to the end of its switch. It returns nil if there is
// none.
func readDispatch(r *reader) *dispatch {
	d := &dispatch{}
	for op := r.Byte(); op != opLoop; op = r.Byte() {
		skipImmediates(r, op)
	}
	if r.Byte() != noResult {
		return nil
	}
	op := r.Byte()
	for ; op == opBlock; op = r.Byte() {
		if r.Byte() != noResult {
			return nil
		}
		d.open++
	}
	if op != opLocalGet {
		return nil
	}
	if d.local = r.Uint32(); r.Byte() != opBrTable {
		return nil
	}
	for range r.Uint32() {
		d.targets = append(d.targets, d.open-int(min(uint64(r.Uint32()), uint64(d.open))))
	}
	r.Uint32() // default target
	d.depth = d.open
	return d
}

// directJumps appends the code of a function for which beginsWithLoop holds, with forward jumps taken directly.
func directJumps(out, code []byte) []byte {
	r := newReader(code)
	d := readDispatch(r)
	if d == nil {
		return append(out, code...)
	}
	copied := 0
	for d.open > 0 && !r.Done() {
		op := r.Byte()
		if op == opI32Const {
			if depth, from, to := d.forwardJump(*r); to > 0 {
				out = append(out, code[copied:from]...)
				out = wasmbin.AppendUint(append(out, opBr), depth)
				copied, r.Pos = to, to
				continue
			}
		}
		d.trackBlocks(op)
		skipImmediates(r, op)
	}
	return append(out, code[copied:]...)
}

// forwardJump reports whether the i32.const before r begins a forward jump. It returns the depth of the block to leave
// and the range of the br instruction; to is zero if it is none.
func (d *dispatch) forwardJump(r reader) (depth, from, to int) {
	part := r.Signed(32)
	if r.Byte() != opLocalSet || r.Uint32() != d.local {
		return 0, 0, 0
	}
	from = r.Pos
	if r.Byte() != opBr || int(r.Uint32()) != d.depth || part < 0 || part >= int64(len(d.targets)) {
		return 0, 0, 0
	}
	block := d.targets[part]
	if block > d.open {
		return 0, 0, 0
	}
	return d.depth - block, from, r.Pos
}

func (d *dispatch) trackBlocks(op byte) {
	switch op {
	case opBlock, opLoop, opIf:
		d.depth++
	case opEnd:
		d.depth--
		d.open = min(d.open, d.depth)
	}
}

package rewrite

// The Go compiler knows no blocks. It makes one loop of a function, around a switch over the parts of its code, and each jump sets the number
// of a part and goes to the head of the loop, also if the part lies ahead:
//
//	loop
//	  block … block
//	    local.get $part
//	    br_table …
//	  end … part 0 …
//	  end … part 1 … i32.const 3, local.set $part, br to the loop …
//	  …
//
// A jump ahead can leave the block at whose end its part begins instead, which is where the switch would lead it. It need not be counted
// there, and takes less time: what remains at the head are the function's entry and true loops.

// dispatch is the switch at the head of a function's loop, and how far its code has been followed.
type dispatch struct {
	// depth is how many blocks are open in the loop, open how many of them are the switch's.
	depth, open int
	// local holds the number of the part. targets has, for each number, which of the switch's blocks leads to the part when it is left,
	// counted from the outermost, which is 1; zero is none of them, and stands for the loop.
	local   uint64
	targets []int
}

// readDispatch reads the beginning of a function, for which leads holds, up to the end of its switch. It returns nil if there is none.
func readDispatch(r *reader) *dispatch {
	d := &dispatch{}
	for op := r.byte(); op != opLoop; op = r.byte() {
		if skipImmediates(r, op) != nil {
			return nil
		}
	}
	if r.byte() != noResult {
		return nil
	}
	op := r.byte()
	for ; op == opBlock; op = r.byte() {
		if r.byte() != noResult {
			return nil
		}
		d.open++
	}
	if d.local = r.uint(); op != opLocalGet || r.byte() != opBrTable {
		return nil
	}
	for range r.uint() {
		d.targets = append(d.targets, d.open-int(min(r.uint(), uint64(d.open))))
		if r.err != nil {
			return nil
		}
	}
	r.uint() // where other numbers lead
	d.depth = d.open
	return d
}

// straighten appends the code of a function, for which leads holds, with the jumps ahead taken directly. It checks nothing: what it cannot
// read is copied.
func straighten(out []byte, r reader) []byte {
	d := readDispatch(&r)
	if d == nil {
		return append(out, r.data...)
	}
	copied := 0
	for d.open > 0 && !r.done() {
		op := r.byte()
		if op == opI32Const {
			if depth, from, to := d.ahead(r); to > 0 {
				out = append(out, r.data[copied:from]...)
				out = appendUint(append(out, opBr), depth)
				copied, r.pos = to, to
				continue
			}
		}
		d.follow(op)
		if skipImmediates(&r, op) != nil {
			break
		}
	}
	return append(out, r.data[copied:]...)
}

// ahead tells whether the i32.const before r begins a jump to a part that lies ahead: the depth of the block to leave, and where the
// jump's br begins and ends, which are zero otherwise.
func (d *dispatch) ahead(r reader) (depth uint64, from, to int) {
	part := r.int()
	if r.byte() != opLocalSet || r.uint() != d.local {
		return 0, 0, 0
	}
	from = r.pos
	if r.byte() != opBr || r.uint() != uint64(d.depth) || r.err != nil || part < 0 || part >= int64(len(d.targets)) {
		return 0, 0, 0
	}
	block := d.targets[part]
	if block > d.open {
		return 0, 0, 0
	}
	return uint64(d.depth - block), from, r.pos
}

// follow is told of an instruction.
func (d *dispatch) follow(op byte) {
	switch op {
	case opBlock, opLoop, opIf:
		d.depth++
	case opEnd:
		d.depth--
		d.open = min(d.open, d.depth)
	}
}

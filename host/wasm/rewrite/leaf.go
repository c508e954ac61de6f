package rewrite

// findLeaves finds the functions that need no count of their own: small ones without calls and loops.
func (w *rewriter) findLeaves(codes [][]byte) {
	w.leafWork = make([]int, len(codes))
	for n, code := range codes {
		w.leafWork[n] = measureLeaf(code)
	}
}

// measureLeaf returns the work of a function without calls, loops and instructions that count. It is zero for all other
// functions and above maxLeafWork.
func measureLeaf(code []byte) int {
	const mostBytes = 4 * maxLeafWork // excludes most functions by size alone
	if len(code) > mostBytes {
		return 0
	}
	r := newReader(code)
	skipLocals(r)
	total := 1
	for !r.Done() {
		op := r.Byte()
		if op == opLoop || op >= opCall && op <= opReturnCallIndirect || op == opPrefixMisc || op == opMemoryGrow {
			return 0
		}
		skipImmediates(r, op)
		total += work(op)
	}
	if total > maxLeafWork {
		return 0
	}
	return total
}

// leafWorkOf returns the work of the called function if that is a leaf, or zero.
func (w *rewriter) leafWorkOf(immediates reader) int {
	callee := immediates.Uint32()
	if callee < w.shiftFrom || uint64(callee-w.shiftFrom) >= uint64(len(w.leafWork)) {
		return 0
	}
	return w.leafWork[callee-w.shiftFrom]
}

// beginsWithLoop reports whether every path through the function soon reaches one loop.
func beginsWithLoop(r reader) bool {
	for total := 0; total <= maxWorkBeforeLoop && !r.Done(); {
		op := r.Byte()
		switch {
		case op == opLoop:
			return true
		case op == opBlock, op >= opLocalGet && op <= opGlobalSet, op >= opI32Const && op < opRefNull:
		default:
			return false
		}
		skipImmediates(&r, op)
		total += work(op)
	}
	return false
}

// cost is the work of an instruction, including that of a callee before its first count.
func (w *rewriter) cost(op byte, immediates reader) int {
	switch op {
	case opCall, opReturnCall:
		return work(op) + max(w.leafWorkOf(immediates), maxWorkBeforeLoop)
	case opCallIndirect, opReturnCallIndirect:
		return work(op) + maxLeafWork
	}
	return work(op)
}

// skipLocals skips the declarations of locals and returns their number.
func skipLocals(r *reader) int {
	count := 0
	for range r.Uint32() {
		count += int(r.Uint32())
		r.Byte()
	}
	return count
}

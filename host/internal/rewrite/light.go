package rewrite

// findLight finds the functions that need not count.
func (w *rewriter) findLight(codes [][]byte) {
	w.light = make([]int, len(codes))
	for n, code := range codes {
		w.light[n] = lightWork(&reader{data: code})
	}
}

// lightWork is the work of a function without calls, loops and instructions that count, or zero if it has one of them or is more than maxLight.
func lightWork(r *reader) int {
	const mostBytes = 4 * maxLight // a quick look at the size leaves out nearly all
	if len(r.data) > mostBytes {
		return 0
	}
	if _, err := skipLocals(r); err != nil {
		return 0
	}
	total := 1
	for !r.done() {
		op := r.byte()
		if op == opLoop || op >= opCall && op <= opReturnCallIndirect || op == opPrefixMisc || op == opMemoryGrow || skipImmediates(r, op) != nil {
			return 0
		}
		total += work(op)
	}
	if total > maxLight {
		return 0
	}
	return total
}

// lightness is the work of the function that a call calls, if it is one that does not count, or zero.
func (w *rewriter) lightness(immediates reader) int {
	callee := immediates.uint()
	if callee < w.shiftFrom || callee-w.shiftFrom >= uint64(len(w.light)) {
		return 0
	}
	return w.light[callee-w.shiftFrom]
}

// leads reports whether a function comes to a loop at once, whatever way it takes.
func leads(r reader) bool {
	for total := 0; total <= maxLead && !r.done(); {
		op := r.byte()
		switch {
		case op == opLoop:
			return r.err == nil
		case op == opBlock, op >= opLocalGet && op <= opGlobalSet, op >= opI32Const && op < opRefNull:
		default:
			return false
		}
		if skipImmediates(&r, op) != nil {
			return false
		}
		total += work(op)
	}
	return false
}

// cost is the work of an instruction with what it calls before that counts.
func (w *rewriter) cost(op byte, immediates reader) int {
	switch op {
	case opCall, opReturnCall:
		return work(op) + max(w.lightness(immediates), maxLead)
	case opCallIndirect, opReturnCallIndirect:
		return work(op) + maxLight
	}
	return work(op)
}

// skipLocals skips the declarations of locals, and returns how many there are.
func skipLocals(r *reader) (int, error) {
	count := 0
	for range r.uint() {
		count += int(r.uint())
		r.byte()
		if r.err != nil {
			break
		}
	}
	return count, r.err
}

package rewrite

// Between two counts a guest does a bounded amount of work. A unit of work takes a fraction of a nanosecond. Most
// instructions cost one or two units; those that may miss the caches or that divide cost eight.
const (
	// maxPath bounds the work between two counts in one function.
	maxPath = 512
	// afterCall is the part of maxPath that is left after a call: the callee may have used the rest after its last
	// count. So a deep recursion also counts while it returns.
	afterCall = 256
	// maxLeafWork bounds functions that do not count. They have no calls and loops, and their work is charged to the
	// caller.
	maxLeafWork = 64
	// maxWorkBeforeLoop bounds the work before a loop whose count also counts for the function's entry.
	maxWorkBeforeLoop = 16
)

// work returns the cost of an instruction in units.
func work(op byte) int {
	switch {
	case op == opElse, op == opEnd:
		return 0
	case op <= opLoop, op == opDrop, op == opLocalGet, op >= opI32Const && op <= opF64Const:
		return 1
	case op >= opLoad && op <= opLoadLast, op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU,
		op == opF32Sqrt, op == opF32Div, op == opF64Sqrt, op == opF64Div, op >= opBrTable && op <= opReturnCallIndirect,
		op == opPrefixMisc, op == opPrefixVector:
		return 8
	}
	return 2
}

// path follows the code of a function in one pass. It tracks the longest possible path of execution since the last
// count.
type path struct {
	length int
	labels []label
}

// label is an open block, loop or if.
type label struct {
	loop bool
	// longest is the longest path that branches to its end so far; skipped is that of an if whose condition is false.
	longest, skipped int
}

// restart begins a new path: after a count, or where execution cannot continue.
func (p *path) restart() { p.length = 0 }

// afterReturn adjusts the path after a call of a function that counts.
func (p *path) afterReturn() { p.length = max(p.length, maxPath-afterCall) }

// advance processes an instruction, whose immediates follow.
func (p *path) advance(op byte, immediates reader) {
	switch op {
	case opBlock, opLoop:
		p.labels = append(p.labels, label{loop: op == opLoop})
	case opIf:
		p.labels = append(p.labels, label{skipped: p.length})
	case opElse, opEnd:
		p.closeLabel(op)
	case opBr:
		p.branch(immediates.Uint32())
		p.restart()
	case opBrIf:
		p.branch(immediates.Uint32())
	case opBrTable:
		for range uint64(immediates.Uint32()) + 1 {
			p.branch(immediates.Uint32())
		}
		p.restart()
	case opUnreachable, opReturn, opReturnCall, opReturnCallIndirect:
		p.restart()
	}
}

// closeLabel ends the if branch or the whole of the innermost label.
func (p *path) closeLabel(op byte) {
	if len(p.labels) == 0 {
		return // the function's own end
	}
	last := &p.labels[len(p.labels)-1]
	if op == opElse {
		last.longest, p.length, last.skipped = max(last.longest, p.length), last.skipped, 0
		return
	}
	p.length = max(p.length, last.longest, last.skipped)
	p.labels = p.labels[:len(p.labels)-1]
}

// branch records a branch to the label of this depth. Branches to a loop are counted at its head.
func (p *path) branch(depth uint32) {
	if uint64(depth) >= uint64(len(p.labels)) {
		return // that is a return
	}
	if to := &p.labels[len(p.labels)-1-int(depth)]; !to.loop {
		to.longest = max(to.longest, p.length)
	}
}

package rewrite

// Between two counts a guest does a bounded amount of work. Its unit is a fraction of a nanosecond for most instructions, which cost one
// or two; what may miss the caches, or divides, costs eight.
const (
	// maxPath is the work that may lie between two counts in one function.
	maxPath = 512
	// afterCall is what is left of it when a call returns: the function that has been called may have used the rest after its last count,
	// and a deep recursion counts on its way back.
	afterCall = 256
	// maxLight bounds functions that do not count: without calls and loops, their work is their caller's.
	maxLight = 64
	// maxLead bounds what a function may do before a loop that counts for its entry too.
	maxLead = 16
)

// work is what an instruction costs.
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

// path follows the code of a function in one pass. It knows the longest way since the last count on which execution can have come.
type path struct {
	length int
	labels []label
}

// label is a block, loop or if that has not ended.
type label struct {
	loop bool
	// longest is the longest path that leaves for its end so far, skipped that of an if whose condition is false.
	longest, skipped int
}

// restart is told that the guest counts here, or that execution does not go on.
func (p *path) restart() { p.length = 0 }

// returned is told that a function returns here that has counted.
func (p *path) returned() { p.length = max(p.length, maxPath-afterCall) }

// pass is told of an instruction, with its immediates to be read.
func (p *path) pass(op byte, immediates reader) {
	switch op {
	case opBlock, opLoop:
		p.labels = append(p.labels, label{loop: op == opLoop})
	case opIf:
		p.labels = append(p.labels, label{skipped: p.length})
	case opElse, opEnd:
		p.close(op)
	case opBr:
		p.branch(immediates.uint())
		p.restart()
	case opBrIf:
		p.branch(immediates.uint())
	case opBrTable:
		for range immediates.uint() + 1 {
			p.branch(immediates.uint())
			if immediates.err != nil {
				break
			}
		}
		p.restart()
	case opUnreachable, opReturn, opReturnCall, opReturnCallIndirect:
		p.restart()
	}
}

// close ends the first or the only half of the innermost label.
func (p *path) close(op byte) {
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

// branch notes that execution may leave for the label of this depth. A loop counts at its head.
func (p *path) branch(depth uint64) {
	if depth >= uint64(len(p.labels)) {
		return // that is a return
	}
	if to := &p.labels[uint64(len(p.labels))-1-depth]; !to.loop {
		to.longest = max(to.longest, p.length)
	}
}

package rewrite

import "github.com/hako-run/hako/host/wasm/wasmbin"

func (w *rewriter) rewriteCode() {
	body, ok := w.sections[wasmbin.CodeSection]
	if !ok {
		return
	}
	codes := splitFunctions(newReader(body))
	w.findLeaves(codes)
	w.result.Functions = len(codes)
	section := wasmbin.AppendUint(make([]byte, 0, len(body)+len(body)/2), len(codes))
	w.countCode = w.chargeConstant(nil, 1)
	var function []byte
	for n, code := range codes {
		function = w.rewriteFunction(function[:0], n, newReader(code))
		section = append(wasmbin.AppendUint(section, len(function)), function...)
		checkLimit("bytes of code with the counting of its steps", len(section), maxGrowth*len(body)+growthSlack)
	}
	w.sections[wasmbin.CodeSection] = section
}

func splitFunctions(r *reader) [][]byte {
	return wasmbin.Vector(r, "functions", maxFunctions, r.Bytes)
}

// rewriteFunction appends a rewritten function. n is its index among those that are not imported.
func (w *rewriter) rewriteFunction(out []byte, n int, r *reader) []byte {
	before := w.result.Operations
	w.result.Operations += skipLocals(r)
	out = append(out, r.Since(0)...)
	switch {
	case beginsWithLoop(*r):
		w.direct = directJumps(w.direct[:0], r.Rest())
		r = newReader(w.direct)
	case w.leafWork[n] == 0:
		out = w.appendCount(out)
	}
	p := &path{labels: w.labels[:0]}
	for !r.Done() {
		immediates := *r
		op := immediates.Byte()
		cost := w.cost(op, immediates)
		if p.length+cost > maxPath {
			out = w.appendCount(out)
			p.restart()
		}
		p.length += cost
		p.advance(op, immediates)
		w.result.Operations++
		if op == opBrTable {
			w.result.Operations += int(immediates.Uint32())
		}
		out = w.copyInstruction(out, r)
		switch {
		case op == opLoop:
			out = w.appendCount(out)
			p.restart()
		case op == opMemoryGrow:
			p.restart()
		case op == opCall && w.leafWorkOf(immediates) == 0, op == opCallIndirect:
			p.afterReturn()
		}
	}
	w.labels = p.labels
	if function := w.result.Operations - before; function > largeFunction {
		w.result.Operations += function
	}
	return out
}

// largeFunction is the number of operations above which those of a function count twice: the interpreter collects them
// in one list, which needs more than twice its size while it grows. Compilers generate no such functions.
const largeFunction = 1_000_000

// appendCount appends the code that counts one step.
func (w *rewriter) appendCount(out []byte) []byte {
	w.result.Operations += insertedOperations
	return append(out, w.countCode...)
}

// insertedOperations bounds the interpreter operations of the code that one charge appends.
const insertedOperations = 16

// chargeConstant appends: fuel -= steps; if fuel < 0 { spent() }. It leaves the stack unchanged.
func (w *rewriter) chargeConstant(out []byte, steps int64) []byte {
	out = wasmbin.AppendUint(append(out, opGlobalGet), w.fuel)
	w.result.Operations += insertedOperations
	return w.subtract(wasmbin.AppendInt(append(out, opI64Const), steps))
}

// chargeOperand appends: fuel -= n >> shift; if fuel < 0 { spent() }. n is on top of the stack and stays there.
func (w *rewriter) chargeOperand(out []byte, shift int64) []byte {
	operand := w.fuel + 1
	w.result.Operations += insertedOperations
	out = wasmbin.AppendUint(append(out, opGlobalSet), operand)
	out = wasmbin.AppendUint(append(out, opGlobalGet), w.fuel)
	out = wasmbin.AppendUint(append(out, opGlobalGet), operand)
	out = wasmbin.AppendInt(append(out, opI64ExtendI32U, opI64Const), shift)
	out = w.subtract(append(out, opI64ShrU))
	return wasmbin.AppendUint(append(out, opGlobalGet), operand)
}

// subtract appends: fuel = a - b; if fuel < 0 { spent() }. a and b are on top of the stack.
func (w *rewriter) subtract(out []byte) []byte {
	out = wasmbin.AppendUint(append(out, opI64Sub, opGlobalSet), w.fuel)
	out = wasmbin.AppendUint(append(out, opGlobalGet), w.fuel)
	out = append(out, opI64Const, 0, opI64LtS, opIf, noResult)
	out = wasmbin.AppendUint(append(out, opCall), w.shiftFrom)
	return append(out, opEnd)
}

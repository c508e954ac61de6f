package rewrite

func (w *rewriter) rewriteCode() error {
	body, ok := w.sections[sectionCode]
	if !ok {
		return nil
	}
	codes, err := splitFunctions(body)
	if err != nil {
		return err
	}
	w.findLeaves(codes)
	w.result.Functions = len(codes)
	section := appendUint(make([]byte, 0, len(body)+len(body)/2), uint64(len(codes)))
	w.countCode = w.chargeConstant(nil, 1)
	var function []byte
	for n, code := range codes {
		if function, err = w.rewriteFunction(function[:0], n, &reader{data: code}); err != nil {
			return err
		}
		section = appendUint(section, uint64(len(function)))
		section = append(section, function...)
		limit := uint64(maxGrowth*len(body) + growthSlack)
		if err := checkLimit("bytes of code with the counting of its steps", uint64(len(section)), limit); err != nil {
			return err
		}
	}
	w.sections[sectionCode] = section
	return nil
}

func splitFunctions(section []byte) ([][]byte, error) {
	r := &reader{data: section}
	var list [][]byte
	for range r.uint() {
		list = append(list, r.bytes(r.length()))
		if r.err != nil {
			break
		}
	}
	return list, r.err
}

// rewriteFunction appends a rewritten function. n is its index among those that are not imported.
func (w *rewriter) rewriteFunction(out []byte, n int, r *reader) ([]byte, error) {
	locals, err := skipLocals(r)
	if err != nil {
		return nil, err
	}
	w.result.Operations += locals
	out = append(out, r.data[:r.pos]...)
	switch {
	case beginsWithLoop(*r):
		w.direct = directJumps(w.direct[:0], reader{data: r.rest()})
		r = &reader{data: w.direct}
	case w.leafWork[n] == 0:
		out = w.appendCount(out)
	}
	p := &path{labels: w.labels[:0]}
	for r.err == nil && !r.done() {
		immediates := *r
		op := immediates.byte()
		cost := w.cost(op, immediates)
		if p.length+cost > maxPath {
			out = w.appendCount(out)
			p.restart()
		}
		p.length += cost
		p.advance(op, immediates)
		w.result.Operations++
		if op == opBrTable {
			w.result.Operations += int(immediates.uint())
		}
		if out, err = w.copyInstruction(out, r); err != nil {
			return nil, err
		}
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
	return out, r.err
}

// appendCount appends the code that counts one step.
func (w *rewriter) appendCount(out []byte) []byte {
	w.result.Operations += insertedOperations
	return append(out, w.countCode...)
}

// insertedOperations bounds the interpreter operations of the code that one charge appends.
const insertedOperations = 16

// chargeConstant appends: fuel -= steps; if fuel < 0 { spent() }. It leaves the stack unchanged.
func (w *rewriter) chargeConstant(out []byte, steps int64) []byte {
	out = appendUint(append(out, opGlobalGet), w.fuel)
	w.result.Operations += insertedOperations
	return w.subtract(appendInt(append(out, opI64Const), steps))
}

// chargeOperand appends: fuel -= n >> shift; if fuel < 0 { spent() }. n is on top of the stack and stays there.
func (w *rewriter) chargeOperand(out []byte, shift int64) []byte {
	operand := w.fuel + 1
	w.result.Operations += insertedOperations
	out = appendUint(append(out, opGlobalSet), operand)
	out = appendUint(append(out, opGlobalGet), w.fuel)
	out = appendUint(append(out, opGlobalGet), operand)
	out = appendInt(append(out, opI64ExtendI32U, opI64Const), shift)
	out = w.subtract(append(out, opI64ShrU))
	return appendUint(append(out, opGlobalGet), operand)
}

// subtract appends: fuel = a - b; if fuel < 0 { spent() }. a and b are on top of the stack.
func (w *rewriter) subtract(out []byte) []byte {
	out = appendUint(append(out, opI64Sub, opGlobalSet), w.fuel)
	out = appendUint(append(out, opGlobalGet), w.fuel)
	out = append(out, opI64Const, 0, opI64LtS, opIf, noResult)
	out = appendUint(append(out, opCall), w.shiftFrom)
	return append(out, opEnd)
}

package rewrite

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Opcodes that the rewriter inserts or handles specially; core specification, section 5.4.
const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opDrop               = 0x1a
	opSelect             = 0x1b
	opSelectTyped        = 0x1c
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableSet           = 0x26
	opLoad               = 0x28
	opLoadLast           = 0x35
	opStoreLast          = 0x3e
	opMemorySize         = 0x3f
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opI32Eqz             = 0x45
	opI64LtS             = 0x53
	opI32DivS            = 0x6d
	opI32RemU            = 0x70
	opI64Sub             = 0x7d
	opI64DivS            = 0x7f
	opI64RemU            = 0x82
	opI64ShrU            = 0x88
	opF32Sqrt            = 0x91
	opF32Div             = 0x95
	opF64Sqrt            = 0x9f
	opF64Div             = 0xa3
	opI64ExtendI32U      = 0xad
	opI64Extend32S       = 0xc4
	opRefNull            = 0xd0
	opRefIsNull          = 0xd1
	opRefFunc            = 0xd2
	opPrefixMisc         = 0xfc
	opPrefixVector       = 0xfd
)

// noResult is the type of blocks without parameters and results.
const noResult = 0x40

// copyInstruction appends the instruction at r, with function indexes shifted and charges for bulk work.
func (w *rewriter) copyInstruction(out []byte, r *reader) []byte {
	start := r.Pos
	switch op := r.Byte(); op {
	case opCall, opReturnCall, opRefFunc:
		return wasmbin.AppendUint(append(out, op), w.shift(r.Uint32()))
	case opPrefixMisc:
		sub := r.Uint32()
		if what, ok := tableInstructions[sub]; ok {
			w.markUnrestorable(what)
		}
		skipMisc(r, sub)
		if shift, ok := bulkShift[sub]; ok {
			out = w.chargeOperand(out, shift)
		}
	case opMemoryGrow:
		r.Byte()
		out = w.chargeConstant(out, growSteps)
	default:
		if op == opTableSet {
			w.markUnrestorable("table.set")
		}
		skipImmediates(r, op)
	}
	return append(out, r.Since(start)...)
}

// skipImmediates skips what follows an opcode. It throws an UnsupportedError for one that is not supported.
func skipImmediates(r *reader, op byte) {
	switch {
	case op <= 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect, op == opRefIsNull,
		op >= opI32Eqz && op <= opI64Extend32S:
	case op == opBlock, op == opLoop, op == opIf:
		r.Signed(33) // block type: the one-byte forms are value types
	case op == opBr, op == opBrIf, op == opCall, op == opReturnCall, op == opRefFunc,
		op >= opLocalGet && op <= opTableSet:
		r.Uint32()
	case op == opBrTable:
		for range r.Uint32() {
			r.Uint32()
		}
		r.Uint32()
	case op == opCallIndirect, op == opReturnCallIndirect:
		r.Uint32()
		r.Uint32()
	case op == opSelectTyped:
		r.Bytes()
	case op >= opLoad && op <= opStoreLast:
		skipMemarg(r)
	case op == opMemorySize, op == opMemoryGrow, op == opRefNull:
		r.Byte()
	case op == opI32Const:
		r.Signed(32)
	case op == opI64Const:
		r.Signed(64)
	case op == opF32Const:
		r.Next(4)
	case op == opF64Const:
		r.Next(8)
	case op == opPrefixMisc:
		skipMisc(r, r.Uint32())
	case op == opPrefixVector:
		skipVector(r)
	default:
		wasmbin.Throw(&UnsupportedError{fmt.Sprintf("instruction 0x%02x", op)})
	}
}

// tableInstructions are the 0xfc instructions that change tables or segments, which restoring an instance does not
// undo.
var tableInstructions = map[uint32]string{
	9: "data.drop", 12: "table.init", 13: "elem.drop", 14: "table.copy", 15: "table.grow", 17: "table.fill",
}

// bulkShift has the 0xfc instructions whose work is the number on top of the stack, in bytes or elements. They cost
// that number shifted right by the value here: a step for 16 bytes, or for two elements.
var bulkShift = map[uint32]int64{8: 4, 10: 4, 11: 4, 12: 1, 14: 1, 15: 1, 17: 1}

// growSteps is the cost of memory.grow, which leaves the guest.
const growSteps = 32

// skipMemarg skips alignment and offset. Bit 6 of the alignment means a memory index (multi-memory).
func skipMemarg(r *reader) {
	if r.Uint32() >= 1<<6 {
		wasmbin.Throw(&UnsupportedError{"several memories"})
	}
	r.Uint32()
}

// skipMisc skips the immediates of the 0xfc instructions: saturating conversions, bulk memory, tables.
func skipMisc(r *reader, sub uint32) {
	switch {
	case sub <= 7: // saturating conversions
	// Data.drop, memory.fill, elem.drop, table.grow, size, fill.
	case sub == 9, sub == 11, sub == 13, sub >= 15 && sub <= 17:
		r.Uint32()
	case sub == 8, sub == 10, sub == 12, sub == 14: // memory.init, memory.copy, table.init, table.copy
		r.Uint32()
		r.Uint32()
	default:
		wasmbin.Throw(&UnsupportedError{fmt.Sprintf("instruction 0xfc %d", sub)})
	}
}

// skipVector skips the immediates of the 0xfd instructions (SIMD).
func skipVector(r *reader) {
	switch sub := r.Uint32(); {
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		skipMemarg(r)
	case sub == 12, sub == 13: // v128.const, i8x16.shuffle
		r.Next(16)
	case sub >= 21 && sub <= 34: // lane access
		r.Byte()
	case sub >= 84 && sub <= 91: // lane loads and stores
		skipMemarg(r)
		r.Byte()
	case sub <= 255:
	default:
		wasmbin.Throw(&UnsupportedError{fmt.Sprintf("instruction 0xfd %d", sub)})
	}
}

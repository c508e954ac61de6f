package rewrite

import "github.com/hako-run/hako/host/wasm/wasmbin"

// rewriteElements shifts the function indexes of element segments; core specification, section 5.5.12.
func (w *rewriter) rewriteElements() {
	body, ok := w.sections[wasmbin.ElementSection]
	if !ok {
		return
	}
	r := newReader(body)
	count := r.Uint32()
	section := wasmbin.AppendUint(nil, count)
	for range count {
		section = w.rewriteElement(section, r)
	}
	w.sections[wasmbin.ElementSection] = section
}

// Flags of element segments.
const (
	elementPassive     = 1
	elementExplicit    = 2
	elementExpressions = 4
)

func (w *rewriter) rewriteElement(out []byte, r *reader) []byte {
	flags := r.Uint32()
	out = wasmbin.AppendUint(out, flags)
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			out = wasmbin.AppendUint(out, r.Uint32()) // table
		}
		out = w.copyConstant(out, r)
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		out = append(out, r.Byte()) // element kind or reference type
	}
	count := r.Uint32()
	out = wasmbin.AppendUint(out, count)
	for range count {
		if flags&elementExpressions == 0 {
			out = wasmbin.AppendUint(out, w.shift(r.Uint32()))
		} else {
			out = w.copyConstant(out, r)
		}
	}
	return out
}

// copyConstant appends a constant expression with function indexes shifted.
func (w *rewriter) copyConstant(out []byte, r *reader) []byte {
	for end := false; !end; {
		end = r.Peek() == opEnd
		out = w.copyInstruction(out, r)
	}
	return out
}

package rewrite

import "fmt"

// rewriteElements shifts the function indexes of element segments; core specification, section 5.5.12.
func (w *rewriter) rewriteElements() error {
	body, ok := w.sections[sectionElement]
	if !ok {
		return nil
	}
	r := &reader{data: body}
	count := r.uint()
	section := appendUint(nil, count)
	for range count {
		var err error
		if section, err = w.rewriteElement(section, r); err != nil {
			return err
		}
	}
	w.sections[sectionElement] = section
	return r.err
}

// Flags of element segments.
const (
	elementPassive     = 1
	elementExplicit    = 2
	elementExpressions = 4
)

func (w *rewriter) rewriteElement(out []byte, r *reader) ([]byte, error) {
	flags := r.uint()
	if flags > 7 {
		return nil, &UnsupportedError{fmt.Sprintf("element segment of kind %d", flags)}
	}
	out = appendUint(out, flags)
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			out = appendUint(out, r.uint()) // table
		}
		offset, err := w.copyConstant(r)
		if err != nil {
			return nil, err
		}
		out = append(out, offset...)
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		out = append(out, r.byte()) // element kind or reference type
	}
	count := r.uint()
	out = appendUint(out, count)
	for range count {
		if r.err != nil {
			return nil, r.err
		}
		if flags&elementExpressions == 0 {
			out = appendUint(out, w.shift(r.uint()))
			continue
		}
		expr, err := w.copyConstant(r)
		if err != nil {
			return nil, err
		}
		out = append(out, expr...)
	}
	return out, r.err
}

// copyConstant appends a constant expression with function indexes shifted.
func (w *rewriter) copyConstant(r *reader) ([]byte, error) {
	var out []byte
	for r.err == nil {
		op := r.data[r.pos:]
		if len(op) == 0 {
			return nil, errTruncated
		}
		end := op[0] == opEnd
		var err error
		if out, err = w.copyInstruction(out, r); err != nil {
			return nil, err
		}
		if end {
			return out, nil
		}
	}
	return nil, r.err
}

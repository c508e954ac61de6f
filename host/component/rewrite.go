package component

import "encoding/binary"

// RewriteModules returns a component with each core module, also those of nested components, replaced by what rewrite
// returns for it. The modules are numbered as Module.ID numbers them.
func RewriteModules(wasm []byte, rewrite func(id int, module []byte) ([]byte, error)) (out []byte, err error) {
	defer catch(&err)
	w := &moduleRewriter{rewrite: rewrite}
	return w.component(newReader(wasm), 0)
}

type moduleRewriter struct {
	rewrite func(id int, module []byte) ([]byte, error)
	modules int
}

func (w *moduleRewriter) component(r *reader, depth int) ([]byte, error) {
	r.limit("components in each other", depth, maxNesting)
	start := r.pos
	readPreamble(r)
	out := append([]byte(nil), r.data[start:r.pos]...)
	for !r.done() {
		start := r.pos
		id := r.byte()
		body := r.section()
		var content []byte
		var err error
		switch id {
		case sectionModule:
			r.limit("core modules", w.modules+1, maxModules)
			w.modules++
			content, err = w.rewrite(w.modules-1, body.data[body.pos:body.end:body.end])
		case sectionComponent:
			content, err = w.component(body, depth+1)
		default:
			out = append(out, r.data[start:r.pos]...)
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(content))), content...)
	}
	return out, nil
}

package component

import (
	"encoding/binary"

	"github.com/hako-run/hako/host/internal/wasmbin"
)

// RewriteModules returns a component with each core module, also those of nested components, replaced by what rewrite
// returns for it. The modules are numbered as Module.ID numbers them.
func RewriteModules(wasm []byte, rewrite func(id int, module []byte) ([]byte, error)) (out []byte, err error) {
	defer wasmbin.Catch(&err)
	w := &moduleRewriter{rewrite: rewrite}
	return w.component(wasmbin.New(wasm, maxName), 0)
}

type moduleRewriter struct {
	rewrite func(id int, module []byte) ([]byte, error)
	modules int
}

func (w *moduleRewriter) component(r *reader, depth int) ([]byte, error) {
	r.Limit("components in each other", depth, maxNesting)
	start := r.Pos
	readPreamble(r)
	out := append([]byte(nil), r.Since(start)...)
	for !r.Done() {
		start := r.Pos
		id := r.Byte()
		body := r.Section()
		var content []byte
		var err error
		switch id {
		case sectionModule:
			r.Limit("core modules", w.modules+1, maxModules)
			w.modules++
			content, err = w.rewrite(w.modules-1, body.Rest())
		case sectionComponent:
			content, err = w.component(body, depth+1)
		default:
			out = append(out, r.Since(start)...)
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(content))), content...)
	}
	return out, nil
}

package component

import (
	"encoding/binary"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// RewriteModules returns a component with each core module, also those of nested components, replaced by what rewrite
// returns for it. The modules are numbered as Module.ID numbers them.
func RewriteModules(wasm []byte, rewrite func(id int, module []byte) ([]byte, error)) (out []byte, err error) {
	defer wasmbin.Catch(&err)
	w := &moduleRewriter{rewrite: rewrite}
	return w.component(wasmbin.New(wasm, maxName), 0), nil
}

type moduleRewriter struct {
	rewrite func(id int, module []byte) ([]byte, error)
	modules int
}

func (w *moduleRewriter) component(r *reader, depth int) []byte {
	r.Limit("components in each other", depth, maxNesting)
	start := r.Pos
	readPreamble(r)
	out := append([]byte(nil), r.Since(start)...)
	r.Sections(func(s wasmbin.Section) {
		var content []byte
		switch s.ID {
		case sectionModule:
			r.Limit("core modules", w.modules+1, maxModules)
			w.modules++
			var err error
			if content, err = w.rewrite(w.modules-1, s.Content.Rest()); err != nil {
				wasmbin.Throw(err)
			}
		case sectionComponent:
			content = w.component(s.Content, depth+1)
		default:
			out = append(out, r.Since(s.Start)...)
			return
		}
		out = append(binary.AppendUvarint(append(out, s.ID), uint64(len(content))), content...)
	})
	return out
}

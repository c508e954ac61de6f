package rewrite

import "github.com/hako-run/hako/host/wasm/wasmbin"

// MaxElements bounds the elements of all tables of a module. Each takes 8 bytes of host memory.
const MaxElements = 1 << 20

// table is a table type; core specification, section 5.3.9.
type table struct {
	reference byte
	limits    wasmbin.Limits
}

// Measure returns the size with which a module's own memory starts, in bytes, and the elements that its own tables may
// have if they may grow by growth, as Module does in its Result.
func Measure(module []byte, growth int) (memory int64, elements int, err error) {
	defer wasmbin.Catch(&err)
	w := &rewriter{sections: readSections(module), growth: uint64(growth)}
	w.boundTables()
	return startMemory(w.sections), w.result.Elements, nil
}

// boundTables bounds the growth of tables: they share growth, and what MaxElements leaves.
func (w *rewriter) boundTables() {
	r, count := entries(w.sections, wasmbin.TableSection)
	if count == 0 {
		return
	}
	var list []table
	used := uint64(0)
	for range count {
		t := table{r.Byte(), r.Limits()}
		used += t.limits.Min
		list = append(list, t)
	}
	section := wasmbin.AppendUint(nil, count)
	growth := min(w.growth, MaxElements-used)
	w.result.Elements = int(used + growth)
	for _, t := range list {
		most := t.limits.Min + growth/uint64(count)
		if t.limits.Flags&wasmbin.LimitsMax != 0 {
			most = min(most, t.limits.Max)
		}
		section = append(section, t.reference, wasmbin.LimitsMax)
		section = wasmbin.AppendUint(wasmbin.AppendUint(section, t.limits.Min), most)
	}
	w.sections[wasmbin.TableSection] = append(section, r.Rest()...)
}

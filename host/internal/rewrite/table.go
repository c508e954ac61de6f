package rewrite

import (
	"fmt"

	"github.com/hako-run/hako/host/internal/wasmbin"
)

// MaxElements bounds the elements of all tables of a module. Each takes 8 bytes of host memory.
const MaxElements = 1 << 20

// table is a table type; core specification, section 5.3.9.
type table struct {
	reference byte
	limits    wasmbin.Limits
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
		checkElements(t.limits.Min)
		used += t.limits.Min
		list = append(list, t)
	}
	checkElements(used)
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

func checkElements(n uint64) {
	if n > MaxElements {
		wasmbin.Throw(fmt.Errorf("its tables have %d elements to start and may have %d", n, MaxElements))
	}
}

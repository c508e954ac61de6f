package rewrite

import "fmt"

// MaxElements bounds the elements of all tables of a module. Each takes 8 bytes of host memory.
const MaxElements = 1 << 20

// table is a table type; core specification, section 5.3.9.
type table struct {
	reference byte
	bounded   bool
	min, max  uint64
}

// boundTables bounds the growth of tables: they share growth, and what MaxElements leaves.
func (w *rewriter) boundTables() error {
	body, ok := w.sections[sectionTable]
	if !ok {
		return nil
	}
	r := &reader{data: body}
	var list []table
	used := uint64(0)
	for range r.uint() {
		t := table{reference: r.byte()}
		flags := r.byte()
		if flags > 1 {
			return &UnsupportedError{fmt.Sprintf("table limits of kind %d", flags)}
		}
		t.bounded, t.min = flags == 1, r.uint()
		if t.bounded {
			t.max = r.uint()
		}
		if r.err != nil {
			return r.err
		}
		if t.min > MaxElements {
			return tooManyElements(t.min)
		}
		used += t.min
		list = append(list, t)
	}
	if used > MaxElements {
		return tooManyElements(used)
	}
	section := appendUint(nil, uint64(len(list)))
	growth := min(w.growth, MaxElements-used)
	w.result.Elements = int(used + growth)
	for _, t := range list {
		most := t.min + growth/uint64(len(list))
		if !t.bounded || t.max > most {
			t.max = most
		}
		section = append(section, t.reference, 1)
		section = appendUint(appendUint(section, t.min), t.max)
	}
	w.sections[sectionTable] = append(section, r.rest()...)
	return r.err
}

func tooManyElements(n uint64) error {
	return fmt.Errorf("its tables have %d elements to start and may have %d", n, MaxElements)
}

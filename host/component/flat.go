package component

// The most core values that parameters and results become. More go through memory.
const (
	maxFlatParams      = 16
	maxFlatAsyncParams = 4 // of a lowered function with option async
	maxFlatResults     = 1
)

const pointer = "\x7f" // the core type of an address

// lifted returns the type of the core function that a function is lifted from.
func (t *Func) lifted(o Options) *coreFunc {
	f := &coreFunc{params: flattenParams(t.Params, maxFlatParams)}
	results := t.flatResult()
	switch {
	case o.Async && o.Callback < 0:
	case o.Async, len(results) > maxFlatResults:
		f.results = pointer
	default:
		f.results = string(results)
	}
	return f
}

// lowered returns the type of the core function that a function is lowered to.
func (t *Func) lowered(async bool) *coreFunc {
	results := t.flatResult()
	if !async {
		f := &coreFunc{flattenParams(t.Params, maxFlatParams), string(results)}
		if len(results) > maxFlatResults {
			f.params, f.results = f.params+pointer, ""
		}
		return f
	}
	f := &coreFunc{flattenParams(t.Params, maxFlatAsyncParams), pointer}
	if len(results) > 0 {
		f.params += pointer
	}
	return f
}

// flatResult returns the core types of the result, or the first ones of too many.
func (t *Func) flatResult() []byte {
	if t.Result == nil {
		return nil
	}
	return t.Result.flatten(nil, maxFlatResults)
}

// flatten returns the core types of values, or the first ones of more than limit.
func flatten(fields []Field, limit int) (flat []byte) {
	for _, f := range fields {
		flat = f.Type.flatten(flat, limit)
	}
	return flat
}

// flattenParams returns the core types of values as parameters: one pointer if they are more than limit.
func flattenParams(fields []Field, limit int) string {
	flat := flatten(fields, limit)
	if len(flat) > limit {
		return pointer
	}
	return string(flat)
}

// flatten appends the core types of a value. It stops after limit of them.
func (t *Type) flatten(flat []byte, limit int) []byte {
	if len(flat) > limit {
		return flat
	}
	switch t.Kind {
	case KindS64, KindU64:
		return append(flat, i64)
	case KindF32:
		return append(flat, f32)
	case KindF64:
		return append(flat, f64)
	case KindString, KindMap:
		return append(flat, i32, i32)
	case KindList:
		if t.Length == 0 {
			return append(flat, i32, i32)
		}
		for n := uint32(0); n < t.Length && len(flat) <= limit; n++ {
			flat = t.Elem.flatten(flat, limit)
		}
		return flat
	case KindRecord, KindTuple:
		for _, f := range t.Fields {
			flat = f.Type.flatten(flat, limit)
		}
		return flat
	case KindVariant, KindOption, KindResult:
		return t.flattenCases(append(flat, i32), limit)
	}
	return append(flat, i32)
}

// flattenCases appends the core types of a variant's payloads, each wide enough for all cases.
func (t *Type) flattenCases(flat []byte, limit int) []byte {
	start := len(flat)
	for _, part := range t.parts() {
		for i, of := range part.flatten(nil, limit) {
			if at := start + i; at < len(flat) {
				flat[at] = join(flat[at], of)
			} else {
				flat = append(flat, of)
			}
		}
	}
	return flat
}

// join returns the core type that holds values of both.
func join(a, b byte) byte {
	switch {
	case a == b:
		return a
	case a == i32 && b == f32 || a == f32 && b == i32:
		return i32
	}
	return i64
}

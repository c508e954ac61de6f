package component

import "strings"

// The most core values that parameters and results become. More go through memory.
const (
	MaxFlatParams      = 16
	maxFlatAsyncParams = 4 // of a lowered function with option async
	MaxFlatResults     = 1
)

const pointer = string(rune(i32)) // the core type of an address

// lifted returns the type of the core function that a function is lifted from.
func (t *Func) lifted(o Options) *coreFunc {
	f := &coreFunc{params: flattenParams(t.Params, MaxFlatParams)}
	results := t.flatResult()
	switch {
	case o.Async && o.Callback < 0:
	case o.Async, len(results) > MaxFlatResults:
		f.results = pointer
	default:
		f.results = results
	}
	return f
}

// CoreSignature returns the value types of the core function that the function is lowered to without option async.
func (t *Func) CoreSignature() (params, results []byte) {
	f := t.lowered(false)
	return []byte(f.params), []byte(f.results)
}

// lowered returns the type of the core function that a function is lowered to.
func (t *Func) lowered(async bool) *coreFunc {
	results := t.flatResult()
	if !async {
		f := &coreFunc{flattenParams(t.Params, MaxFlatParams), results}
		if len(results) > MaxFlatResults {
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
func (t *Func) flatResult() string {
	if t.Result == nil {
		return ""
	}
	return t.Result.core()
}

// flatten returns the core types of values, or the first ones of more than MaxFlatParams.
func flatten(fields []Field) (flat string) {
	for _, f := range fields {
		if flat += f.Type.core(); len(flat) > MaxFlatParams {
			return flat[:MaxFlatParams+1]
		}
	}
	return flat
}

// flattenParams returns the core types of values as parameters: one pointer if they are more than limit.
func flattenParams(fields []Field, limit int) string {
	flat := flatten(fields)
	if len(flat) > limit {
		return pointer
	}
	return flat
}

// core returns the core types of a value, or the first ones of more than MaxFlatParams. Decode has computed them.
func (t *Type) core() string {
	if t.flat != "" {
		return t.flat
	}
	return t.flatten()
}

// flatten computes the core types of a value, or the first ones of more than MaxFlatParams.
func (t *Type) flatten() string {
	switch t.Kind {
	case KindS64, KindU64:
		return string(rune(i64))
	case KindF32:
		return string(rune(f32))
	case KindF64:
		return string(rune(f64))
	case KindString, KindMap:
		return pointer + pointer
	case KindList:
		if t.Length == 0 {
			return pointer + pointer
		}
		return first(strings.Repeat(t.Elem.core(), int(min(t.Length, MaxFlatParams+1))))
	case KindRecord, KindTuple:
		return flatten(t.Fields)
	case KindVariant, KindOption, KindResult:
		return first(pointer + string(joinAll(t.parts())))
	}
	return string(rune(i32))
}

func first(flat string) string { return flat[:min(len(flat), MaxFlatParams+1)] }

// joinAll returns the core types of a variant's payloads, each wide enough for all cases.
func joinAll(payloads []*Type) (flat []byte) {
	for _, payload := range payloads {
		for i, core := range []byte(payload.core()) {
			if i < len(flat) {
				flat[i] = join(flat[i], core)
			} else {
				flat = append(flat, core)
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

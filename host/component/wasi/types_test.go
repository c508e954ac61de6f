package wasi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

// imported are the types of the functions that the components of testdata import, by "interface#function".
var imported = sync.OnceValue(func() map[string]*component.Func {
	types := map[string]*component.Func{}
	paths, _ := filepath.Glob("../../wasm/component/testdata/*.wasm")
	for _, dir := range []string{"", "wassette", "wasmcp"} {
		more, _ := filepath.Glob(filepath.Join(os.Getenv("HAKO_COMPONENTS"), dir, "*.wasm"))
		paths = append(paths, more...)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !component.IsComponent(data) {
			continue
		}
		c, err := component.Decode(data)
		if err != nil {
			continue
		}
		for _, i := range c.Imports {
			if i.Instance == nil {
				continue
			}
			name, _, _ := strings.Cut(i.Name, "@")
			for _, e := range i.Instance.Exports {
				if e.Func != nil {
					types[name+"#"+e.Name] = e.Func
				}
			}
		}
	}
	return types
})

// checkTypes reports values of a call that do not have the types that components import.
func checkTypes(t *testing.T, function string, args []any, result any) {
	t.Helper()
	f := imported()[function]
	if f == nil {
		return
	}
	for i, p := range f.Params {
		if err := conforms(p.Type, args[i]); err != nil {
			t.Errorf("%s: parameter %s: %v", function, p.Name, err)
		}
	}
	if f.Result == nil && result != nil {
		t.Errorf("%s returns %v", function, result)
	} else if f.Result != nil {
		if err := conforms(f.Result, result); err != nil {
			t.Errorf("%s: result: %v", function, err)
		}
	}
}

// conforms compares a value with its type; component.Type says which Go values a type has.
func conforms(t *component.Type, v any) error {
	if t == nil {
		if v != nil {
			return fmt.Errorf("%T, want nothing", v)
		}
		return nil
	}
	switch t.Kind {
	case component.KindBool:
		return is[bool](v)
	case component.KindU8, component.KindU16, component.KindU32, component.KindU64:
		return is[uint64](v)
	case component.KindS8, component.KindS16, component.KindS32, component.KindS64:
		return is[int64](v)
	case component.KindF64:
		return is[float64](v)
	case component.KindString:
		return is[string](v)
	case component.KindFlags:
		return is[uint32](v)
	case component.KindList:
		if t.Elem.Kind == component.KindU8 {
			return is[[]byte](v)
		}
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%T, want a list", v)
		}
		for _, e := range list {
			if err := conforms(t.Elem, e); err != nil {
				return err
			}
		}
	case component.KindRecord, component.KindTuple:
		list, ok := v.([]any)
		if !ok || len(list) != len(t.Fields) {
			return fmt.Errorf("%#v, want %d fields", v, len(t.Fields))
		}
		for i, f := range t.Fields {
			if err := conforms(f.Type, list[i]); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	case component.KindVariant, component.KindEnum, component.KindOption, component.KindResult:
		return conformsCase(t, v)
	case component.KindOwn, component.KindBorrow:
		if v == nil {
			return fmt.Errorf("no resource")
		}
	default:
		return fmt.Errorf("kind %d is not known", t.Kind)
	}
	return nil
}

func conformsCase(t *component.Type, v any) error {
	c, ok := v.(component.Case)
	if !ok {
		return fmt.Errorf("%#v, want a case", v)
	}
	cases := t.Fields
	switch t.Kind {
	case component.KindOption:
		cases = []component.Field{{}, {Type: t.Elem}}
	case component.KindResult:
		cases = []component.Field{{Type: t.Elem}, {Type: t.Err}}
	}
	if int(c.Number) >= len(cases) {
		return fmt.Errorf("case %d of %d", c.Number, len(cases))
	}
	if err := conforms(cases[c.Number].Type, c.Value); err != nil {
		return fmt.Errorf("case %d %s: %w", c.Number, cases[c.Number].Name, err)
	}
	return nil
}

func is[T any](v any) error {
	if _, ok := v.(T); !ok {
		return fmt.Errorf("%#v, want %T", v, *new(T))
	}
	return nil
}

package component

import (
	"fmt"
	"strings"
)

// maxText bounds the text of a type, in bytes. A type can mention another one 100,000 times.
const maxText = 10_000

// kindNames are the kinds of types in WIT.
var kindNames = [...]string{
	"bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string", "error-context",
	"record", "variant", "list", "tuple", "flags", "enum", "option", "result", "own", "borrow", "stream",
	"future", "map",
}

func (k Kind) String() string { return kindNames[k] }

// keywords need a % before them as names.
var keywords = func() map[string]bool {
	words := map[string]bool{}
	for _, word := range append(strings.Fields(
		"as async constructor export from func import include interface own package "+
			"resource static type use with world"), kindNames[:]...) {
		words[word] = true
	}
	return words
}()

func identifier(name string) string {
	if keywords[name] {
		return "%" + name
	}
	return name
}

// witText builds text of WIT. It ends with an ellipsis when it is longer than limit.
type witText struct {
	strings.Builder
	limit int
}

func (w *witText) full() bool { return w.Len() > w.limit }

func (w *witText) text() string {
	if w.full() {
		return w.String()[:w.limit] + "…"
	}
	return w.String()
}

// String returns the type in WIT: its name, if it has one. Records, variants, enums and flags have no other form in
// WIT; without a name they are written as their definition.
func (t *Type) String() string {
	w := witText{limit: maxText}
	w.typ(t)
	return w.text()
}

// String returns the type of a function in WIT: func(text: string) -> u32.
func (t *Func) String() string {
	w := witText{limit: maxText}
	w.function(t, 0)
	return w.text()
}

// function writes the type of a function without its first parameters.
func (w *witText) function(t *Func, without int) {
	if t.Async {
		w.WriteString("async ")
	}
	w.WriteString("func(")
	w.fields(t.Params[without:], KindRecord)
	w.WriteString(")")
	if t.Result != nil {
		w.WriteString(" -> ")
		w.typ(t.Result)
	}
}

func (w *witText) typ(t *Type) {
	if t.Name != "" {
		w.WriteString(identifier(t.Name))
		return
	}
	w.definition(t)
}

// definition writes a type without its name.
func (w *witText) definition(t *Type) {
	switch t.Kind {
	case KindRecord, KindVariant, KindFlags, KindEnum:
		w.WriteString(t.Kind.String() + " { ")
		w.fields(t.Fields, t.Kind)
		w.WriteString(" }")
	case KindOwn:
		w.WriteString(identifier(t.Resource.Name))
	case KindBorrow:
		w.WriteString("borrow<" + identifier(t.Resource.Name) + ">")
	default:
		w.WriteString(t.Kind.String())
		w.arguments(t)
	}
}

// arguments writes the types in angle brackets of a list, tuple, option, result, stream, future or map.
func (w *witText) arguments(t *Type) {
	if len(t.Fields) == 0 && t.Elem == nil && t.Err == nil {
		return
	}
	w.WriteString("<")
	switch {
	case t.Kind == KindTuple:
		w.fields(t.Fields, t.Kind)
	case t.Elem == nil:
		w.WriteString("_")
	default:
		w.typ(t.Elem)
	}
	if t.Err != nil {
		w.WriteString(", ")
		w.typ(t.Err)
	}
	if t.Length > 0 {
		fmt.Fprintf(&w.Builder, ", %d", t.Length)
	}
	w.WriteString(">")
}

// fields writes fields, cases, labels, elements or parameters.
func (w *witText) fields(fields []Field, of Kind) {
	for i, f := range fields {
		if w.full() {
			return
		}
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(identifier(f.Name))
		switch {
		case f.Type == nil:
		case of == KindVariant:
			w.WriteString("(")
			w.typ(f.Type)
			w.WriteString(")")
		case of == KindTuple:
			w.typ(f.Type)
		default:
			w.WriteString(": ")
			w.typ(f.Type)
		}
	}
}

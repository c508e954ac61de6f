package component

import (
	"fmt"
	"strings"
)

// maxText bounds the bytes of a type as text: a type can mention another one 100,000 times.
const maxText = 10_000

// kindNames are the kinds of types in WIT.
var kindNames = [...]string{"bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string",
	"error-context", "record", "variant", "list", "tuple", "flags", "enum", "option", "result", "own", "borrow", "stream",
	"future", "map"}

func (k Kind) String() string { return kindNames[k] }

// witText builds text of WIT. It ends with an ellipsis when it is longer than maxText.
type witText struct{ strings.Builder }

func (w *witText) full() bool { return w.Len() > maxText }

func (w *witText) text() string {
	if w.full() {
		return w.String()[:maxText] + "…"
	}
	return w.String()
}

// String returns the type in WIT: its name, if it has one. Records, variants, enums and flags have no other form in WIT;
// without a name they are written as their definition.
func (t *Type) String() string {
	var w witText
	w.typ(t)
	return w.text()
}

// String returns the type of a function in WIT: func(text: string) -> u32.
func (t *Func) String() string {
	var w witText
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
		w.WriteString(t.Name)
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
		w.WriteString(t.Resource.Name)
	case KindBorrow:
		w.WriteString("borrow<" + t.Resource.Name + ">")
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
		fmt.Fprintf(w, ", %d", t.Length)
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
		w.WriteString(f.Name)
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

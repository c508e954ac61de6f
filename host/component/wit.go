package component

import (
	"fmt"
	"strings"
)

// kindNames are the kinds of types in WIT.
var kindNames = [...]string{"bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string",
	"error-context", "record", "variant", "list", "tuple", "flags", "enum", "option", "result", "own", "borrow", "stream",
	"future", "map"}

func (k Kind) String() string { return kindNames[k] }

// String returns the type in WIT. A record, variant, enum or flags type is its name, or its body if it has none.
func (t *Type) String() string {
	if t.Name != "" {
		return t.Name
	}
	return t.body()
}

// body returns the type in WIT without its name.
func (t *Type) body() string {
	switch t.Kind {
	case KindRecord, KindVariant, KindFlags, KindEnum:
		return t.Kind.String() + " { " + joinFields(t.Fields, t.Kind) + " }"
	case KindTuple:
		return "tuple<" + joinFields(t.Fields, t.Kind) + ">"
	case KindList:
		if t.Length > 0 {
			return fmt.Sprintf("list<%s, %d>", t.Elem, t.Length)
		}
		return "list<" + t.Elem.String() + ">"
	case KindOption:
		return "option<" + t.Elem.String() + ">"
	case KindMap:
		return "map<" + t.Elem.String() + ", " + t.Err.String() + ">"
	case KindResult:
		switch {
		case t.Err == nil && t.Elem == nil:
			return "result"
		case t.Err == nil:
			return "result<" + t.Elem.String() + ">"
		case t.Elem == nil:
			return "result<_, " + t.Err.String() + ">"
		}
		return "result<" + t.Elem.String() + ", " + t.Err.String() + ">"
	case KindOwn:
		return t.Resource.Name
	case KindBorrow:
		return "borrow<" + t.Resource.Name + ">"
	case KindStream, KindFuture:
		if t.Elem != nil {
			return t.Kind.String() + "<" + t.Elem.String() + ">"
		}
	}
	return t.Kind.String()
}

// joinFields returns fields, cases, labels or parameters in WIT.
func joinFields(fields []Field, of Kind) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		switch {
		case f.Type == nil:
			texts[i] = f.Name
		case of == KindVariant:
			texts[i] = f.Name + "(" + f.Type.String() + ")"
		case of == KindTuple:
			texts[i] = f.Type.String()
		default:
			texts[i] = f.Name + ": " + f.Type.String()
		}
	}
	return strings.Join(texts, ", ")
}

// String returns the type of a function in WIT: func(text: string) -> u32.
func (t *Func) String() string {
	text := "func(" + joinFields(t.Params, KindRecord) + ")"
	if t.Async {
		text = "async " + text
	}
	if t.Result != nil {
		text += " -> " + t.Result.String()
	}
	return text
}

package component

import (
	"slices"
	"strings"
)

// maxWorld bounds the text of a world, in bytes.
const maxWorld = 1 << 20

// World shows in tests what was decoded. It returns what the component imports and exports as text of WIT: the world, and the packages with the interfaces
// that it mentions.
func (c *Component) World() string {
	w := &worldText{witText: witText{limit: maxWorld}, owners: map[any]owner{}, interfaces: map[string][]Extern{}}
	w.own(c.Imports)
	w.own(c.Exports)
	w.line(0, "world root {")
	for _, e := range c.Imports {
		w.item("import", e)
	}
	for _, e := range c.Exports {
		w.item("export", e)
	}
	w.line(0, "}")
	for _, name := range w.packages {
		w.pack(name)
	}
	return w.text()
}

type worldText struct {
	witText
	owners map[any]owner // of *Type and *Resource
	// interfaces are those that were mentioned, in the order of names.
	interfaces map[string][]Extern
	names      []string
	packages   []string
}

// owner is the interface that defines a type, and the type's name in it.
type owner struct{ iface, name string }

// own notes the interfaces' types: the first interface with a type defines it, the others use it.
func (w *worldText) own(externs []Extern) {
	for _, e := range externs {
		if e.Sort != SortInstance {
			continue
		}
		for _, export := range e.Instance.Exports {
			if t := export.definedType(); export.Sort == SortType {
				if _, ok := w.owners[t]; !ok {
					w.owners[t] = owner{e.interfaceName(), export.Name}
				}
			}
		}
	}
}

// line writes a line of these parts, indented.
func (w *worldText) line(indent int, parts ...string) {
	if w.full() {
		return
	}
	w.WriteString(strings.Repeat("  ", indent))
	for _, part := range parts {
		w.WriteString(part)
	}
	w.WriteByte('\n')
}

// item writes an import or export of the world.
func (w *worldText) item(keyword string, e Extern) {
	switch name := e.interfaceName(); {
	case e.Sort == SortFunc:
		w.line(1, keyword, " ", identifier(e.Name), ": ", e.Func.String(), ";")
	case e.Sort == SortInstance && strings.Contains(name, ":"):
		if e.Implements != "" {
			name = identifier(e.Name) + ": " + name
		}
		w.line(1, keyword, " ", name, ";")
		w.mention(e.interfaceName(), e.Instance.Exports)
	case e.Sort == SortInstance:
		w.line(1, keyword, " ", identifier(e.Name), ": interface {")
		w.body(e.Name, e.Instance.Exports)
		w.line(1, "}")
	case e.Sort == SortType:
		w.definedType(1, "", e, nil)
	default:
		w.line(1, "// ", keyword, " ", e.Name, ": ", e.Sort.String())
	}
}

// mention notes an interface that a package defines.
func (w *worldText) mention(name string, exports []Extern) {
	if _, ok := w.interfaces[name]; ok {
		return
	}
	w.interfaces[name] = exports
	w.names = append(w.names, name)
	if pack, _ := splitInterface(name); !slices.Contains(w.packages, pack) {
		w.packages = append(w.packages, pack)
	}
}

// splitInterface returns the package, with the version, and the interface of a name like wasi:io/streams@0.2.6.
func splitInterface(name string) (pack, iface string) {
	name, version, versioned := strings.Cut(name, "@")
	pack, iface, _ = strings.Cut(name, "/")
	if versioned {
		pack += "@" + version
	}
	return pack, iface
}

func (w *worldText) pack(pack string) {
	w.line(0)
	w.line(0, "package ", pack, " {")
	for _, name := range w.names {
		if in, iface := splitInterface(name); in == pack {
			w.line(1, "interface ", identifier(iface), " {")
			w.body(name, w.interfaces[name])
			w.line(1, "}")
		}
	}
	w.line(0, "}")
}

// body writes the types and functions of an interface.
func (w *worldText) body(iface string, exports []Extern) {
	methods := map[string][]Extern{} // functions of resources
	for _, e := range exports {
		if name := (externName{Name: e.Name}); e.Sort == SortFunc && strings.HasPrefix(e.Name, "[") {
			name.split()
			methods[name.resource] = append(methods[name.resource], e)
		}
	}
	for _, e := range exports {
		if e.Sort == SortType {
			w.definedType(2, iface, e, methods[e.Name])
		}
	}
	for _, e := range exports {
		if e.Sort == SortFunc && !strings.HasPrefix(e.Name, "[") {
			w.line(2, identifier(e.Name), ": ", e.Func.String(), ";")
		}
	}
}

// definedType writes the definition of a type, or where it comes from.
func (w *worldText) definedType(indent int, iface string, e Extern, methods []Extern) {
	if from, ok := w.origin(e); ok && (from != owner{iface, e.Name}) {
		as := ""
		if from.name != e.Name {
			as = " as " + identifier(e.Name)
		}
		switch {
		case from.iface != iface:
			w.line(indent, "use ", from.iface, ".{", identifier(from.name), as, "};")
		default:
			w.line(indent, "type ", identifier(e.Name), " = ", identifier(from.name), ";")
		}
		return
	}
	switch {
	case e.Resource != nil && len(methods) == 0:
		w.line(indent, "resource ", identifier(e.Name), ";")
	case e.Resource != nil:
		w.line(indent, "resource ", identifier(e.Name), " {")
		for _, m := range methods {
			w.method(indent+1, m)
		}
		w.line(indent, "}")
	case e.Type != nil:
		w.valueType(indent, e)
	default:
		w.line(indent, "// type ", e.Name)
	}
}

// origin returns the interface that defines a type.
func (w *worldText) origin(e Extern) (owner, bool) {
	if e.Type != nil && e.Type.alias != nil {
		if from, ok := w.owners[e.Type.alias]; ok {
			return from, true
		}
	}
	from, ok := w.owners[e.definedType()]
	return from, ok
}

func (w *worldText) valueType(indent int, e Extern) {
	switch e.Type.Kind {
	case KindRecord, KindVariant, KindFlags, KindEnum:
		w.line(indent, e.Type.Kind.String(), " ", identifier(e.Name), " {")
		for _, f := range e.Type.Fields {
			text := witText{limit: maxText}
			text.fields([]Field{f}, e.Type.Kind)
			w.line(indent+1, text.text(), ",")
		}
		w.line(indent, "}")
	default:
		text := witText{limit: maxText}
		text.definition(e.Type)
		w.line(indent, "type ", identifier(e.Name), " = ", text.text(), ";")
	}
}

// method writes a function of a resource.
func (w *worldText) method(indent int, e Extern) {
	name := externName{Name: e.Name}
	name.split()
	text := witText{limit: maxText}
	switch name.kind {
	case constructorName:
		text.function(e.Func, 0)
		signature := strings.TrimPrefix(text.text(), "func")
		if at := strings.LastIndex(signature, " -> "); at >= 0 &&
			e.Func.Result.Kind == KindOwn { // it goes without saying
			signature = signature[:at]
		}
		w.line(indent, "constructor", signature, ";")
	case staticName:
		text.function(e.Func, 0)
		w.line(indent, identifier(name.label), ": static ", text.text(), ";")
	default:
		text.function(e.Func, 1)
		w.line(indent, identifier(name.label), ": ", text.text(), ";")
	}
}

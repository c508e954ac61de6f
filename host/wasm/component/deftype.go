package component

import "github.com/hako-run/hako/host/wasm/wasmbin"

// Codes of types in the binary format.
const (
	typeBool         = 0x7f // the primitive types are numbered downwards from here, in the order of Kind
	typeString       = 0x73
	typeRecord       = 0x72
	typeVariant      = 0x71
	typeList         = 0x70
	typeTuple        = 0x6f
	typeFlags        = 0x6e
	typeEnum         = 0x6d
	typeOption       = 0x6b
	typeResult       = 0x6a
	typeOwn          = 0x69
	typeBorrow       = 0x68
	typeFixedList    = 0x67
	typeStream       = 0x66
	typeFuture       = 0x65
	typeErrorContext = 0x64
	typeMap          = 0x63
	typeAsyncFunc    = 0x43
	typeInstance     = 0x42
	typeComponent    = 0x41
	typeFunc         = 0x40
	typeResource     = 0x3f
)

// primitives are the types without parts, by kind.
var primitives = func() (types [KindErrorContext + 1]*Type) {
	for kind := range types {
		t := &Type{Kind: Kind(kind), measure: measure{size: 1, depth: 1, pointers: Kind(kind) == KindString}}
		t.layOut()
		t.flat = t.flatten()
		types[kind] = t
	}
	return types
}()

// primitive returns the primitive type with a code, nil if it is another type's.
func primitive(code byte) *Type {
	switch {
	case code >= typeString && code <= typeBool:
		return primitives[typeBool-code]
	case code == typeErrorContext:
		return primitives[KindErrorContext]
	}
	return nil
}

// typeDefinition decodes an entry of a type section.
func (c *componentDecoder) typeDefinition(r *reader) {
	if r.Peek() == typeResource {
		c.resourceDefinition(r)
		return
	}
	c.types = append(c.types, c.defType(r, c.scope))
}

func (c *componentDecoder) resourceDefinition(r *reader) {
	r.Byte()
	r.Expect(0x7f, "the representation of a resource, which must be i32,")
	destructor := -1
	if r.Flag("the mark of a destructor") {
		index := r.Uint32()
		f := at(r, c.coreItems[CoreFunc], index, CoreFunc.String()).function
		if *f != (coreFunc{string([]byte{i32}), ""}) {
			r.Fail("the destructor of a resource has not the type (func (param i32))")
		}
		destructor = int(index)
	}
	resource := c.newResource(r, c.scope, "")
	resource.Imported = false
	c.defined[uint32(len(c.types))] = true
	c.types = append(c.types, resource)
	c.define(r, &DefineResource{resource, destructor})
}

// newResource returns a resource type that is none of those before.
func (d *decoder) newResource(r *reader, s *scope, name string) *Resource {
	d.countTypes(r, 1)
	resource := &Resource{Name: name, Imported: true, scope: s.id}
	s.resources = append(s.resources, resource)
	return resource
}

// defType decodes a type of any kind but a resource.
func (d *decoder) defType(r *reader, s *scope) any {
	d.countTypes(r, 1)
	switch code := r.Peek(); code {
	case typeFunc, typeAsyncFunc:
		r.Byte()
		return d.funcType(r, s, code == typeAsyncFunc)
	case typeInstance:
		r.Byte()
		return d.instanceType(r, s)
	case typeComponent:
		r.Byte()
		return d.componentType(r, s)
	case typeResource:
		r.Fail("a resource is defined in the type of a component or instance")
	}
	return d.definedValueType(r, s)
}

func (d *decoder) definedValueType(r *reader, s *scope) *Type {
	code := r.Byte()
	if t := primitive(code); t != nil {
		return t
	}
	t := &Type{}
	switch code {
	case typeRecord:
		t.Kind, t.Fields = KindRecord, d.fields(r, s, "fields", 1)
	case typeVariant:
		t.Kind, t.Fields = KindVariant, d.cases(r, s)
	case typeList:
		t.Kind, t.Elem = KindList, d.valueType(r, s)
	case typeFixedList:
		t.Kind, t.Elem, t.Length = KindList, d.valueType(r, s), r.Uint32()
		if t.Length == 0 {
			r.Fail("a list has the fixed length 0")
		}
	case typeTuple:
		t.Kind = KindTuple
		t.Fields = nonEmpty(r, "types of a tuple", maxEntries, func() Field { return Field{Type: d.valueType(r, s)} })
	case typeFlags:
		t.Kind, t.Fields = KindFlags, d.labels(r, "labels of flags", maxFlags)
	case typeEnum:
		t.Kind, t.Fields = KindEnum, d.labels(r, "cases of an enum", maxEntries)
	case typeOption:
		t.Kind, t.Elem = KindOption, d.valueType(r, s)
	case typeResult:
		t.Kind, t.Elem, t.Err = KindResult, d.optionalType(r, s), d.optionalType(r, s)
	case typeOwn, typeBorrow:
		t.Kind = KindOwn
		if code == typeBorrow {
			t.Kind = KindBorrow
		}
		index := r.Uint32()
		t.Resource, t.unnamed = typeAt[*Resource](r, s, index, "a resource type"), s.defined[index]
	case typeStream:
		t.Kind, t.Elem = KindStream, d.optionalType(r, s)
		if t.Elem != nil && t.Elem.Kind == KindChar {
			r.Fail("a stream has elements of type char, which the specification leaves out")
		}
	case typeFuture:
		t.Kind, t.Elem = KindFuture, d.optionalType(r, s)
	case typeMap:
		t.Kind, t.Elem, t.Err = KindMap, d.valueType(r, s), d.valueType(r, s)
	default:
		r.Pos--
		r.Fail("type code %#x does not exist", code)
	}
	switch t.Kind {
	case KindRecord, KindVariant, KindFlags, KindEnum:
		checkLabels(r, "field or case", t.Fields)
	}
	if (t.Kind == KindStream || t.Kind == KindFuture) && t.Elem != nil && t.Elem.borrow {
		r.Fail("a stream or future has borrowed handles: only parameters of functions can")
	}
	return d.checkType(r, t)
}

// nonEmpty reads a vector with at least one entry.
func nonEmpty[T any](r *reader, what string, limit int, entry func() T) []T {
	list := wasmbin.Vector(r, what, limit, entry)
	if len(list) == 0 {
		r.Fail("there are no %s: at least one is needed", what)
	}
	return list
}

func (d *decoder) fields(r *reader, s *scope, what string, atLeast int) []Field {
	read := wasmbin.Vector[Field]
	if atLeast > 0 {
		read = nonEmpty[Field]
	}
	return read(r, what, maxEntries, func() Field { return Field{r.Name(), d.valueType(r, s)} })
}

func (d *decoder) cases(r *reader, s *scope) []Field {
	return nonEmpty(r, "cases of a variant", maxEntries, func() Field {
		f := Field{r.Name(), d.optionalType(r, s)}
		r.Expect(0, "the end of a case")
		return f
	})
}

func (d *decoder) labels(r *reader, what string, limit int) []Field {
	return nonEmpty(r, what, limit, func() Field { return Field{Name: r.Name()} })
}

// valueType reads the code of a primitive type or the index of a defined one.
func (d *decoder) valueType(r *reader, s *scope) *Type {
	if t := primitive(r.Peek()); t != nil {
		r.Byte()
		return t
	}
	return typeAt[*Type](r, s, r.Uint32(), "a value type")
}

func (d *decoder) optionalType(r *reader, s *scope) *Type {
	if r.Flag("the mark of an optional type") {
		return d.valueType(r, s)
	}
	return nil
}

func (d *decoder) funcType(r *reader, s *scope, async bool) *Func {
	f := &Func{Params: d.fields(r, s, "parameters", 0), Async: async}
	f.Result = d.result(r, s)
	checkLabels(r, "parameter", f.Params)
	for _, p := range f.Params {
		f.add(p.Type.measure)
	}
	if f.Result != nil {
		if f.Result.borrow {
			r.Fail("the result of a function has a borrowed handle: only parameters can")
		}
		f.add(f.Result.measure)
	}
	d.check(r, f.measure, len(f.Params))
	return f
}

// result reads the result of a function, nil for none.
func (d *decoder) result(r *reader, s *scope) *Type {
	if !r.Flag("the mark of a function without result") {
		return d.valueType(r, s)
	}
	r.Expect(0, "the number of results")
	return nil
}

// declarations reads the body of the type of a component or instance.
func (d *decoder) declarations(r *reader, s *scope, imports, exports *[]Extern) {
	for range r.Count("declarations", maxDefinitions) {
		switch kind := r.Byte(); {
		case kind == 0:
			d.coreType(r, s)
		case kind == 1:
			s.types = append(s.types, d.defType(r, s))
		case kind == 2:
			d.aliasDeclaration(r, s)
		case kind == 3 && imports != nil:
			*imports = append(*imports, d.importDeclaration(r, s))
		case kind == 4:
			name := readExternName(r)
			e := d.externType(r, s, name).Extern
			s.exports.add(r, "export", name, &e)
			if s.kind == inComponentType {
				d.checkExport(r, s, &e)
			}
			*exports = append(*exports, e)
		default:
			r.Fail("kind %#x of a declaration does not exist", kind)
		}
	}
}

func (d *decoder) aliasDeclaration(r *reader, s *scope) {
	sort, core := readSort(r)
	switch kind := r.Byte(); {
	case kind == aliasExport && (sort == SortType || sort == SortInstance):
		index, name := r.Uint32(), r.Name()
		d.aliasExport(r, s, sort, core, index, name)
	case kind == aliasOuter && (sort == SortType || sort == SortCore && core == CoreType):
		count, index := r.Uint32(), r.Uint32()
		d.aliasOuter(r, s, sort, core, count, index)
	default:
		r.Fail("an alias in the type of a component or instance may only refer to types or instances")
	}
}

func (d *decoder) instanceType(r *reader, parent *scope) *InstanceType {
	s := d.newScope(r, parent, inInstanceType)
	t := &InstanceType{scope: s.id}
	d.declarations(r, s, nil, &t.Exports)
	d.checkInstanceType(r, t)
	return t
}

func (d *decoder) componentType(r *reader, parent *scope) *ComponentType {
	s := d.newScope(r, parent, inComponentType)
	t := &ComponentType{scope: s.id}
	d.declarations(r, s, &t.Imports, &t.Exports)
	t.imported = s.imported
	d.checkComponentType(r, t)
	return t
}

func (d *decoder) checkInstanceType(r *reader, t *InstanceType) {
	t.measure = d.checkExterns(r, t.Exports)
}

func (d *decoder) checkComponentType(r *reader, t *ComponentType) {
	t.measure = d.checkExterns(r, t.Imports)
	t.add(d.checkExterns(r, t.Exports))
}

func (d *decoder) checkExterns(r *reader, externs []Extern) measure {
	m := measure{size: 1}
	for i := range externs {
		m.add(externs[i].measure())
		r.Limit("types in one type, each counted as often as it is mentioned", m.size, maxTypeSize)
	}
	d.check(r, m, len(externs))
	return m
}

func (e *Extern) measure() measure {
	switch e.Sort {
	case SortFunc:
		return e.Func.measure
	case SortType:
		return measureOf(e.definedType())
	case SortComponent:
		return e.Component.measure
	case SortInstance:
		return e.Instance.measure
	}
	return measure{size: 1}
}

func measureOf(t any) measure {
	switch t := t.(type) {
	case *Type:
		return t.measure
	case *Func:
		return t.measure
	case *InstanceType:
		return t.measure
	case *ComponentType:
		return t.measure
	}
	return measure{size: 1, resources: true} // *Resource
}

// declared is an import or export with its type.
type declared struct {
	Extern
	before int // number of the scope's resources before it: the later ones are its own
}

// importDeclaration reads an import, and adds it to the index space of its sort.
func (d *decoder) importDeclaration(r *reader, s *scope) Extern {
	name := readExternName(r)
	e := d.externType(r, s, name)
	s.imports.add(r, "import", name, &e.Extern)
	d.checkImport(r, s, &e.Extern)
	s.imported = append(s.imported, s.resources[e.before:]...)
	return e.Extern
}

// Kinds of the types of imports and exports.
const (
	externModule    = 0
	externFunc      = 1
	externValue     = 2
	externType      = 3
	externComponent = 4
	externInstance  = 5
)

// externType reads the type of an import or export, and adds the item to the index space of its sort. Instances get
// resource types of their own.
func (d *decoder) externType(r *reader, s *scope, name externName) declared {
	before := len(s.resources)
	e := Extern{}
	switch kind := r.Byte(); kind {
	case externModule:
		r.Expect(byte(CoreModule), "the sort of a core item, which must be a module,")
		var ok bool
		index := r.Uint32()
		if e.module, ok = at(r, s.coreTypes, index, "core type").(*moduleType); !ok {
			r.Fail("core type %d is used as the type of a module, which it is not", index)
		}
	case externFunc:
		e.Sort, e.Func = SortFunc, typeAt[*Func](r, s, r.Uint32(), "the type of a function")
	case externType:
		e.Sort = SortType
		if r.Flag("the bound of a type") {
			e.Resource = d.newResource(r, s, name.Name)
		} else {
			e.setDefinedType(at(r, s.types, r.Uint32(), "type"))
		}
	case externComponent:
		e.Sort, e.Component = SortComponent, typeAt[*ComponentType](r, s, r.Uint32(), "the type of a component")
	case externInstance:
		t := typeAt[*InstanceType](r, s, r.Uint32(), "the type of an instance")
		fresh := &substitution{d, r, map[*Resource]*Resource{}, nil, t.scope, s, map[any]any{}}
		e.Sort, e.Instance = SortInstance, fresh.instance(t)
	case externValue:
		r.Fail("%q is a value, and values are not part of WASI 0.2 or 0.3", name.Name)
	default:
		r.Fail("kind %#x of an import or export does not exist", kind)
	}
	e = d.named(r, e, name)
	s.add(e)
	return declared{e, before}
}

// named gives an import or export its name. A type gets it too.
func (d *decoder) named(r *reader, e Extern, name externName) Extern {
	e.Name, e.Implements = name.Name, name.Implements
	switch {
	case e.Sort != SortType:
	case e.Type != nil:
		d.countTypes(r, 1)
		named := *e.Type
		if named.Name != "" {
			named.alias = e.Type
		}
		named.Name = e.Name
		e.Type = &named
	default:
		e.nameResource()
	}
	return e
}

// nameResource gives a resource type without a name that of its export.
func (e *Extern) nameResource() {
	if e.Resource != nil && e.Resource.Name == "" {
		e.Resource.Name = e.Name
	}
}

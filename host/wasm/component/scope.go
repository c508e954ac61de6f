package component

// scope is a component, component type or instance type while it is decoded: its index spaces.
type scope struct {
	parent *scope
	kind   scopeKind
	depth  int
	// id distinguishes the scope's resources from those of others.
	id int
	// resources are the resource types that came into being in the scope.
	resources []*Resource
	imported  []*Resource // those that imports brought
	imports   names
	exports   names
	// importedTypes and exportedTypes are the types that imports, and that exports, may mention (see visibility).
	importedTypes, exportedTypes map[any]bool

	types      []any           // *Type, *Func, *Resource, *InstanceType or *ComponentType
	defined    map[uint32]bool // indexes of types that define a resource
	funcs      []*Func
	components []*ComponentType
	instances  []*InstanceType

	coreTypes     []any // *coreFunc or *moduleType
	modules       []*moduleType
	coreInstances []map[string]coreItem
	coreItems     [CoreTag + 1][]coreItem
}

type scopeKind int

const (
	inComponent scopeKind = iota
	inComponentType
	inInstanceType
	inModuleType
)

func (d *decoder) newScope(r *reader, parent *scope, kind scopeKind) *scope {
	d.total.scopes++
	s := &scope{parent: parent, kind: kind, id: d.total.scopes,
		importedTypes: map[any]bool{}, exportedTypes: map[any]bool{},
		defined: map[uint32]bool{}}
	if parent != nil {
		s.depth = parent.depth + 1
	}
	r.Limit("components and their types in each other", s.depth, maxNesting)
	return s
}

// enclosing returns the scope that is count further out.
func (s *scope) enclosing(r *reader, count uint32) *scope {
	for range count {
		if s = s.parent; s == nil {
			r.Fail("an alias refers to %d enclosing components, and there are fewer", count)
		}
	}
	return s
}

func at[T any](r *reader, items []T, index uint32, what string) T {
	if uint64(index) >= uint64(len(items)) {
		r.Fail("%s %d is used, and %d are defined before", what, index, len(items))
	}
	return items[index]
}

// typeAt returns a type of the wanted sort.
func typeAt[T any](r *reader, s *scope, index uint32, what string) T {
	t, ok := at(r, s.types, index, "type").(T)
	if !ok {
		r.Fail("type %d is used as %s, which it is not", index, what)
	}
	return t
}

// coreLength returns the length of a core index space.
func (s *scope) coreLength(r *reader, sort CoreSort) int {
	switch {
	case sort <= CoreTag:
		return len(s.coreItems[sort])
	case sort == CoreType:
		return len(s.coreTypes)
	case sort == CoreModule:
		return len(s.modules)
	case sort == CoreInstance:
		return len(s.coreInstances)
	}
	r.Fail("core sort %#x does not exist", byte(sort))
	return 0
}

func (s *scope) addCore(item coreItem) { s.coreItems[item.sort] = append(s.coreItems[item.sort], item) }

// add appends an item to the index space of its sort.
func (s *scope) add(e Extern) {
	switch e.Sort {
	case SortCore:
		s.modules = append(s.modules, e.module)
	case SortFunc:
		s.funcs = append(s.funcs, e.Func)
	case SortType:
		s.types = append(s.types, e.definedType())
	case SortComponent:
		s.components = append(s.components, e.Component)
	case SortInstance:
		s.instances = append(s.instances, e.Instance)
	}
}

// definedType returns what an extern of SortType is a type of.
func (e *Extern) definedType() any {
	switch {
	case e.Resource != nil:
		return e.Resource
	case e.Func != nil:
		return e.Func
	case e.Instance != nil:
		return e.Instance
	case e.Component != nil:
		return e.Component
	}
	return e.Type
}

// setDefinedType sets what an extern of SortType is a type of.
func (e *Extern) setDefinedType(t any) {
	switch t := t.(type) {
	case *Type:
		e.Type = t
	case *Resource:
		e.Resource = t
	case *Func:
		e.Func = t
	case *InstanceType:
		e.Instance = t
	case *ComponentType:
		e.Component = t
	}
}

// extern returns what a reference names, under the reference's name.
func (s *scope) extern(r *reader, ref Ref) Extern {
	e := Extern{Name: ref.Name, Sort: ref.Sort}
	switch ref.Sort {
	case SortCore:
		if ref.Core != CoreModule {
			r.Fail("a core item of sort %#x is passed between components: of core items only modules can be",
				byte(ref.Core))
		}
		e.module = at(r, s.modules, ref.Index, "core module")
	case SortFunc:
		e.Func = at(r, s.funcs, ref.Index, "function")
	case SortType:
		e.setDefinedType(at(r, s.types, ref.Index, "type"))
	case SortComponent:
		e.Component = at(r, s.components, ref.Index, "component")
	case SortInstance:
		e.Instance = at(r, s.instances, ref.Index, "instance")
	}
	return e
}

// lookup returns the export of that name.
func (t *InstanceType) lookup(name string) (Extern, bool) {
	if t.index == nil {
		t.index = make(map[string]int, len(t.Exports))
		for i, e := range t.Exports {
			t.index[e.Name] = i
		}
	}
	i, ok := t.index[name]
	if !ok {
		return Extern{}, false
	}
	return t.Exports[i], true
}

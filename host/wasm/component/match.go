package component

// matcher checks that items may be given where others are wanted. Value types match if they are equal but for their
// names: so says the specification.
type matcher struct {
	*decoder
	r *reader
	// bound has the resource types that the wanted types leave open, with those that were given for them.
	bound map[*Resource]*Resource
	// values has the value types that were given for wanted ones: they are equal, but for their names.
	values map[*Type]*Type
}

func newMatcher(d *decoder, r *reader) *matcher {
	return &matcher{d, r, map[*Resource]*Resource{}, map[*Type]*Type{}}
}

func (d *decoder) steps(r *reader, n int) {
	d.total.steps += n
	r.Limit("steps of comparing types", d.total.steps, maxSteps)
}

// extern checks that have may be given where want is wanted.
func (m *matcher) extern(want, have *Extern) {
	m.steps(m.r, 1)
	if want.Sort != have.Sort {
		m.r.Fail("%q is a %s, and a %s is expected", want.Name, have.Sort, want.Sort)
	}
	var ok bool
	switch want.Sort {
	case SortCore:
		m.steps(m.r, len(want.module.imports)+len(have.module.imports)+len(want.module.exports))
		ok = want.module.accepts(have.module)
	case SortFunc:
		ok = m.function(want.Func, have.Func)
	case SortType:
		ok = m.definedType(want, have)
	case SortComponent:
		m.component(want.Component, have.Component)
		ok = true
	case SortInstance:
		m.exports(want.Name, want.Instance.Exports, have.Instance)
		ok = true
	}
	if !ok {
		m.r.Fail("%q has not the type that is wanted of it", want.Name)
	}
}

func (m *matcher) exports(name string, want []Extern, have *InstanceType) {
	for i := range want {
		e, ok := have.lookup(want[i].Name)
		if !ok {
			m.r.Fail("%q lacks the export %q", name, want[i].Name)
		}
		m.extern(&want[i], &e)
	}
}

func (m *matcher) definedType(want, have *Extern) bool {
	switch {
	case want.Resource != nil && have.Resource != nil:
		return m.resource(want.Resource, have.Resource)
	case want.Type != nil && have.Type != nil:
		m.values[want.Type] = have.Type
		return m.value(want.Type, have.Type)
	case want.Func != nil && have.Func != nil:
		return m.function(want.Func, have.Func)
	case want.Instance != nil && have.Instance != nil:
		m.exports(want.Name, want.Instance.Exports, have.Instance)
		return true
	case want.Component != nil && have.Component != nil:
		m.component(want.Component, have.Component)
		return true
	}
	return false
}

func (m *matcher) resource(want, have *Resource) bool {
	if to := m.bound[have]; to != nil {
		have = to
	}
	if to, open := m.bound[want]; open {
		if to == nil {
			m.bound[want] = have
			return true
		}
		want = to
	}
	return want == have
}

// value compares value types.
func (m *matcher) value(want, have *Type) bool {
	m.steps(m.r, 1)
	switch {
	case want == have && (want == nil || !want.resources):
		return true
	case want == nil || have == nil || want.Kind != have.Kind || want.Length != have.Length:
		return false
	case want.Resource != nil:
		return m.resource(want.Resource, have.Resource)
	}
	return m.fields(want.Fields, have.Fields) && m.value(want.Elem, have.Elem) && m.value(want.Err, have.Err)
}

func (m *matcher) fields(want, have []Field) bool {
	if len(want) != len(have) {
		return false
	}
	for i, f := range want {
		if f.Name != have[i].Name || !m.value(f.Type, have[i].Type) {
			return false
		}
	}
	return true
}

func (m *matcher) function(want, have *Func) bool {
	m.steps(m.r, 1)
	return want.Async == have.Async && m.fields(want.Params, have.Params) && m.value(want.Result, have.Result)
}

// component checks that a component may be given where another is wanted: it imports no more, and exports no less. Both
// get resource types of their own, since they may share some.
func (m *matcher) component(want, have *ComponentType) {
	m.steps(m.r, len(want.Imports)+len(have.Exports))
	want, open := m.renamed(want)
	for _, resource := range open[len(want.imported):] {
		m.bound[resource] = nil
	}
	have, _ = m.renamed(have)
	for _, resource := range have.imported {
		m.bound[resource] = nil
	}
	given := &InstanceType{Exports: want.Imports}
	for i := range have.Imports {
		e, ok := given.lookup(have.Imports[i].Name)
		if !ok {
			m.r.Fail("a component imports %q, which the wanted one does not", have.Imports[i].Name)
		}
		m.extern(&have.Imports[i], &e)
	}
	m.exports("a component", want.Exports, &InstanceType{Exports: have.Exports})
}

// renamed copies a type with new resource types of its own, and returns them: those of the imports come first.
func (m *matcher) renamed(t *ComponentType) (*ComponentType, []*Resource) {
	to := &scope{}
	s := &substitution{m.decoder, m.r, map[*Resource]*Resource{}, nil, t.scope, to, map[any]any{}}
	for _, imported := range t.imported {
		s.resource(imported)
	}
	return s.component(t), to.resources
}

package component

// substitution replaces types in others. What mentions none of them stays as it is.
type substitution struct {
	*decoder
	r         *reader
	resources map[*Resource]*Resource
	values    map[*Type]*Type
	// Resource types of the scope from that resources lacks get new ones in the scope to.
	from int
	to   *scope
	memo map[any]any // results by original: types that are shared stay so
}

func (s *substitution) resource(of *Resource) *Resource {
	if of == nil {
		return nil
	}
	if to := s.resources[of]; to != nil {
		return to
	}
	if of.scope != s.from {
		return of
	}
	to := s.newResource(s.r, s.to, of.Name)
	s.resources[of] = to
	return to
}

// replaced returns what becomes of t. The first time, change makes that of a copy, and reports whether it is another
// type. Without resources, t can only change by the values that are replaced.
func replaced[T any](s *substitution, t *T, m measure, entries int, change func(*T) bool) *T {
	if !m.resources && len(s.values) == 0 {
		return t
	}
	if to, ok := s.memo[t]; ok {
		return to.(*T)
	}
	s.steps(s.r, 1+entries)
	result, to := t, *t
	if change(&to) {
		s.countTypes(s.r, 1+entries)
		result = &to
	}
	s.memo[t] = result
	return result
}

func (s *substitution) value(t *Type) *Type {
	if t == nil {
		return nil
	}
	if to := s.values[t]; to != nil {
		return to
	}
	return replaced(s, t, t.measure, len(t.Fields), func(to *Type) (changed bool) {
		to.Fields, changed = s.fields(t.Fields)
		to.Elem, to.Err, to.Resource, to.alias = s.value(t.Elem), s.value(t.Err), s.resource(t.Resource),
			s.value(t.alias)
		return changed || to.Elem != t.Elem || to.Err != t.Err || to.Resource != t.Resource || to.alias != t.alias
	})
}

func (s *substitution) fields(fields []Field) (to []Field, changed bool) {
	to = make([]Field, len(fields))
	for i, f := range fields {
		to[i] = Field{f.Name, s.value(f.Type)}
		changed = changed || to[i].Type != f.Type
	}
	return to, changed
}

func (s *substitution) function(f *Func) *Func {
	if f == nil {
		return nil
	}
	return replaced(s, f, f.measure, len(f.Params), func(to *Func) (changed bool) {
		to.Params, changed = s.fields(f.Params)
		to.Result = s.value(f.Result)
		return changed || to.Result != f.Result
	})
}

func (s *substitution) instance(t *InstanceType) *InstanceType {
	if t == nil {
		return nil
	}
	return replaced(s, t, t.measure, len(t.Exports), func(to *InstanceType) (changed bool) {
		to.index = nil
		to.Exports, changed = s.externs(t.Exports)
		return changed
	})
}

func (s *substitution) component(t *ComponentType) *ComponentType {
	if t == nil {
		return nil
	}
	return replaced(s, t, t.measure, len(t.Imports)+len(t.Exports), func(to *ComponentType) bool {
		var imports, exports bool
		to.Imports, imports = s.externs(t.Imports)
		to.Exports, exports = s.externs(t.Exports)
		to.imported = nil
		for _, of := range t.imported {
			to.imported = append(to.imported, s.resource(of))
		}
		return imports || exports
	})
}

func (s *substitution) externs(externs []Extern) (to []Extern, changed bool) {
	to = make([]Extern, len(externs))
	for i, e := range externs {
		e.Func, e.Type, e.Resource = s.function(e.Func), s.value(e.Type), s.resource(e.Resource)
		e.Instance, e.Component = s.instance(e.Instance), s.component(e.Component)
		to[i] = e
		changed = changed || e != externs[i]
	}
	return to, changed
}

package component

// substitution copies types with other resource types in them. What mentions none stays as it is.
type substitution struct {
	*decoder
	r         *reader
	resources map[*Resource]*Resource
	// Resource types of the scope from that resources lacks get new ones in the scope to.
	from int
	to   *scope
	memo map[any]any // copies by original: types that are shared stay so
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

// copied returns the copy of t, which change makes of a shallow copy when it is needed first.
func copied[T any](s *substitution, t *T, m measure, entries int, change func(*T)) *T {
	if !m.resources {
		return t
	}
	if to, ok := s.memo[t]; ok {
		return to.(*T)
	}
	s.countTypes(s.r, 1+entries)
	to := *t
	s.memo[t] = &to
	change(&to)
	return &to
}

func (s *substitution) value(t *Type) *Type {
	if t == nil {
		return nil
	}
	return copied(s, t, t.measure, len(t.Fields), func(to *Type) {
		to.Fields, to.Elem, to.Err = s.fields(t.Fields), s.value(t.Elem), s.value(t.Err)
		to.Resource = s.resource(t.Resource)
	})
}

func (s *substitution) fields(fields []Field) []Field {
	to := make([]Field, len(fields))
	for i, f := range fields {
		to[i] = Field{f.Name, s.value(f.Type)}
	}
	return to
}

func (s *substitution) function(f *Func) *Func {
	if f == nil {
		return nil
	}
	return copied(s, f, f.measure, len(f.Params), func(to *Func) {
		to.Params, to.Result = s.fields(f.Params), s.value(f.Result)
	})
}

func (s *substitution) instance(t *InstanceType) *InstanceType {
	if t == nil {
		return nil
	}
	return copied(s, t, t.measure, len(t.Exports), func(to *InstanceType) {
		to.Exports, to.index = s.externs(t.Exports), nil
	})
}

func (s *substitution) component(t *ComponentType) *ComponentType {
	if t == nil {
		return nil
	}
	return copied(s, t, t.measure, len(t.Imports)+len(t.Exports), func(to *ComponentType) {
		to.Imports, to.Exports, to.imported = s.externs(t.Imports), s.externs(t.Exports), nil
		for _, of := range t.imported {
			to.imported = append(to.imported, s.resource(of))
		}
	})
}

func (s *substitution) externs(externs []Extern) []Extern {
	to := make([]Extern, len(externs))
	for i, e := range externs {
		e.Func, e.Type, e.Resource = s.function(e.Func), s.value(e.Type), s.resource(e.Resource)
		e.Instance, e.Component = s.instance(e.Instance), s.component(e.Component)
		to[i] = e
	}
	return to
}

package component

// visibility checks that the types which an import or export mentions have names of their own, so that whoever uses it
// can mention them too. Resources, records, variants, enums and flags need such a name: that of an import, or for an
// export also that of an export before it. Other types need none, but their parts may.
//
// Source: Explainer.md, External Visibility of Types.
type visibility struct {
	*decoder
	r    *reader
	what string // "import" or "export"
	name string
	// named are the types that may be mentioned. Those that the import or export itself names are added to all of adds.
	named map[any]bool // *Type and *Resource
	adds  []map[any]bool
}

// checkImport checks the types of an import. Its names are names for later exports too.
func (d *decoder) checkImport(r *reader, s *scope, e *Extern) {
	v := visibility{d, r, "import", e.Name, s.importedTypes, []map[any]bool{s.importedTypes, s.exportedTypes}}
	v.extern(e)
}

// checkExport checks the types of an export.
func (d *decoder) checkExport(r *reader, s *scope, e *Extern) {
	v := visibility{d, r, "export", e.Name, s.exportedTypes, []map[any]bool{s.exportedTypes}}
	v.extern(e)
}

// extern checks an import or export, or the export of an instance. Components and core modules mention no types but
// their own.
func (v *visibility) extern(e *Extern) {
	v.steps(v.r, 1)
	switch {
	case e.Func != nil:
		for _, p := range e.Func.Params {
			v.mention(p.Type)
		}
		if e.Func.Result != nil {
			v.mention(e.Func.Result)
		}
	case e.Instance != nil:
		for i := range e.Instance.Exports {
			v.extern(&e.Instance.Exports[i])
		}
	case e.Type != nil:
		v.parts(e.Type)
		v.add(e.Type)
	case e.Resource != nil:
		v.add(e.Resource)
	}
}

func (v *visibility) add(t any) {
	for _, names := range v.adds {
		names[t] = true
	}
}

func (v *visibility) mention(t *Type) {
	v.steps(v.r, 1)
	switch t.Kind {
	case KindRecord, KindVariant, KindFlags, KindEnum:
		if !v.named[t] {
			v.r.Fail("%s %q mentions a %s without a name: import or export that type before it", v.what, v.name, t.Kind)
		}
	default:
		v.parts(t)
	}
}

func (v *visibility) parts(t *Type) {
	if t.Resource != nil && (t.unnamed || !v.named[t.Resource]) {
		v.r.Fail("%s %q mentions a resource without a name: import or export that type before it", v.what, v.name)
	}
	for _, part := range t.parts() {
		v.mention(part)
	}
}

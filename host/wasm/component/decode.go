package component

import (
	"bytes"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Error is the error for a file that is no component, or one that cannot be read.
type Error = wasmbin.Error

type reader = wasmbin.Reader

// preamble is the start of every component: the magic number, version 13 and layer 1.
var preamble = []byte("\x00asm\x0d\x00\x01\x00")

// IsComponent reports whether a file claims to be a component, of any version. A core module has layer 0.
func IsComponent(wasm []byte) bool {
	return len(wasm) >= len(preamble) && bytes.HasPrefix(wasm, preamble[:4]) && wasm[6] == 1 && wasm[7] == 0
}

// Section IDs of the binary format, after the one of custom sections.
const (
	sectionModule = iota + 1
	sectionCoreInstance
	sectionCoreType
	sectionComponent
	sectionInstance
	sectionAlias
	sectionType
	sectionCanon
	sectionStart
	sectionImport
	sectionExport
	sectionValue
)

// Decode reads and validates a component. The error is an *Error. The bytes must not change afterwards.
func Decode(wasm []byte) (c *Component, err error) {
	defer wasmbin.Catch(&err)
	d := &decoder{}
	c, _ = d.component(wasmbin.New(wasm, maxName), nil)
	return c, nil
}

// decoder decodes a file. It counts what the limits bound in all of it.
type decoder struct {
	total struct{ scopes, modules, components, definitions, types, steps int }
}

// componentDecoder decodes one component.
type componentDecoder struct {
	*decoder
	*scope
	component *Component
}

func readPreamble(r *reader) {
	if !bytes.HasPrefix(r.Rest(), preamble) {
		r.Fail("it does not start as a component of version 13 (0x0d): components of WASI 0.2 and 0.3 are supported")
	}
	r.Pos += len(preamble)
}

func (d *decoder) component(r *reader, parent *scope) (*Component, *ComponentType) {
	d.total.components++
	r.Limit("components", d.total.components, maxComponents)
	readPreamble(r)
	c := &componentDecoder{d, d.newScope(r, parent, inComponent), &Component{}}
	r.Sections(func(s wasmbin.Section) {
		if !c.section(s) {
			r.FailAt(s.Start, "section %d does not exist", s.ID)
		}
		if s.ID != wasmbin.CustomSection && s.ID != sectionModule {
			s.Content.Finish("a section")
		}
	})
	t := &ComponentType{Imports: c.component.Imports, Exports: c.component.Exports, scope: c.id, imported: c.imported}
	d.checkComponentType(r, t)
	return c.component, t
}

// section decodes a section. It reports false for an unknown one.
func (c *componentDecoder) section(s wasmbin.Section) bool {
	r := s.Content
	switch s.ID {
	case wasmbin.CustomSection:
		if s.Name == "package-docs" && c.component.Docs == nil {
			c.component.Docs = r.Rest()
		}
	case sectionModule:
		c.module(r)
	case sectionCoreInstance:
		c.each(r, "core instances", c.coreInstance)
	case sectionCoreType:
		c.each(r, "core types", func(r *reader) { c.coreType(r, c.scope) })
	case sectionComponent:
		nested, t := c.decoder.component(r, c.scope)
		c.define(r, &Nested{nested})
		c.components = append(c.components, t)
	case sectionInstance:
		c.each(r, "instances", c.instance)
	case sectionAlias:
		c.each(r, "aliases", c.alias)
	case sectionType:
		c.each(r, "types", c.typeDefinition)
	case sectionCanon:
		c.each(r, "canonical functions", c.canon)
	case sectionImport:
		c.each(r, "imports", c.importDefinition)
	case sectionExport:
		c.each(r, "exports", c.exportDefinition)
	case sectionStart, sectionValue:
		r.Fail("the component has values or a start function, which are not part of WASI 0.2 or 0.3")
	default:
		return false
	}
	return true
}

// each reads the entries of a section.
func (c *componentDecoder) each(r *reader, what string, entry func(*reader)) {
	for range r.Count(what, maxDefinitions) {
		entry(r)
	}
}

func (c *componentDecoder) define(r *reader, definition Definition) {
	c.total.definitions++
	r.Limit("definitions", c.total.definitions, maxDefinitions)
	c.component.Definitions = append(c.component.Definitions, definition)
}

func (c *componentDecoder) module(r *reader) {
	code := r.Rest()
	r.Limit("core modules", c.total.modules+1, maxModules)
	c.define(r, &Module{Code: code, ID: c.total.modules})
	c.total.modules++
	c.modules = append(c.modules, c.coreModule(r))
}

// coreRef reads the sort and index of a core item that exists.
func (c *componentDecoder) coreRef(r *reader, name string) Ref {
	ref := Ref{Name: name, Core: CoreSort(r.Byte())}
	length := c.coreLength(r, ref.Core)
	if ref.Index = r.Uint32(); uint64(ref.Index) >= uint64(length) {
		r.Fail("%s %d is used, and %d are defined before", ref.Core, ref.Index, length)
	}
	return ref
}

// ref reads the sort and index of an item that exists.
func (c *componentDecoder) ref(r *reader, name string) (Ref, Extern) {
	ref := Ref{Name: name}
	ref.Sort, ref.Core = readSort(r)
	if ref.Sort == SortValue {
		r.Fail("a value is used, and values are not part of WASI 0.2 or 0.3")
	}
	ref.Index = r.Uint32()
	e := c.extern(r, ref)
	ref.Resource = e.Resource
	return ref, e
}

func (c *componentDecoder) coreInstance(r *reader) {
	switch kind := r.Byte(); kind {
	case 0:
		index := r.Uint32()
		module := at(r, c.modules, index, "core module")
		args := wasmbin.Vector(r, "arguments", maxEntries, func() Ref {
			name := r.Name()
			ref := c.coreRef(r, name)
			if ref.Core != CoreInstance {
				r.Fail("argument %q of a core instance is not a core instance", name)
			}
			return ref
		})
		c.checkCoreArgs(r, module, args)
		c.define(r, &Instantiate{index, args})
		c.coreInstances = append(c.coreInstances, module.exports)
	case 1:
		items := map[string]coreItem{}
		exports := wasmbin.Vector(r, "exports", maxEntries, func() Ref {
			ref := c.coreRef(r, r.Name())
			if ref.Core > CoreTag {
				r.Fail("a core instance exports %q, which is a %s", ref.Name, ref.Core)
			}
			if _, ok := items[ref.Name]; ok {
				r.Fail("a core instance exports %q twice", ref.Name)
			}
			items[ref.Name] = c.coreItems[ref.Core][ref.Index]
			return ref
		})
		c.countTypes(r, len(exports))
		c.define(r, &CoreExports{exports})
		c.coreInstances = append(c.coreInstances, items)
	default:
		r.Fail("kind %#x of a core instance does not exist", kind)
	}
}

// checkCoreArgs checks the core instances that a core module is instantiated with.
func (c *componentDecoder) checkCoreArgs(r *reader, module *moduleType, args []Ref) {
	given := map[string]map[string]coreItem{}
	for _, arg := range args {
		if _, ok := given[arg.Name]; ok {
			r.Fail("argument %q of a core instance is given twice", arg.Name)
		}
		given[arg.Name] = c.coreInstances[arg.Index]
	}
	c.steps(r, len(module.imports))
	for _, want := range module.imports {
		have, ok := given[want.module][want.name]
		if !ok {
			r.Fail("a core module imports %q of %q, which its arguments lack", want.name, want.module)
		}
		if !want.item.accepts(&have) {
			r.Fail("a core module imports %q of %q with another type than its argument has", want.name, want.module)
		}
	}
}

func (c *componentDecoder) instance(r *reader) {
	var t *InstanceType
	switch kind := r.Byte(); kind {
	case 0:
		index := r.Uint32()
		of := at(r, c.components, index, "component")
		given := map[string]Extern{}
		args := wasmbin.Vector(r, "arguments", maxEntries, func() Ref {
			name := r.Name()
			ref, e := c.ref(r, name)
			if _, ok := given[name]; ok {
				r.Fail("argument %q is given twice", name)
			}
			given[name] = e
			return ref
		})
		t = c.instantiate(r, of, given)
		c.define(r, &InstantiateNested{index, args, t})
	case 1:
		t = &InstanceType{}
		var seen names
		exports := wasmbin.Vector(r, "exports", maxEntries, func() Ref {
			name := readExternName(r)
			if name.resource != "" { // such an instance defines no types for it
				r.Fail("%q, the function of a resource, is an export of an instance that is made of items", name.Name)
			}
			ref, e := c.ref(r, name.Name)
			seen.add(r, "export", name, &e)
			e.nameResource()
			t.Exports = append(t.Exports, e)
			return ref
		})
		c.checkInstanceType(r, t)
		c.define(r, &Exports{exports})
	default:
		r.Fail("kind %#x of an instance does not exist", kind)
	}
	c.instances = append(c.instances, t)
}

// instantiate returns the type of an instance of a component with these arguments.
func (c *componentDecoder) instantiate(r *reader, of *ComponentType, args map[string]Extern) *InstanceType {
	m := newMatcher(c.decoder, r)
	for _, resource := range of.imported {
		m.bound[resource] = nil
	}
	for _, want := range of.Imports {
		have, ok := args[want.Name]
		if !ok {
			r.Fail("an instance of a component lacks the argument %q", want.Name)
		}
		m.extern(&want, &have)
	}
	s := &substitution{c.decoder, r, m.bound, m.values, of.scope, c.scope, map[any]any{}}
	t := &InstanceType{}
	t.Exports, _ = s.externs(of.Exports)
	for _, e := range t.Exports {
		e.nameResource()
	}
	c.checkInstanceType(r, t)
	return t
}

// Kinds of aliases.
const (
	aliasExport     = 0
	aliasCoreExport = 1
	aliasOuter      = 2
)

func (c *componentDecoder) alias(r *reader) {
	sort, core := readSort(r)
	switch kind := r.Byte(); {
	case kind == aliasExport:
		index, name := r.Uint32(), r.Name()
		if c.aliasExport(r, c.scope, sort, core, index, name).Sort != SortType {
			c.define(r, &Alias{sort, core, index, name})
		}
	case kind == aliasCoreExport && sort == SortCore && core <= CoreTag:
		index := r.Uint32()
		instance, name := at(r, c.coreInstances, index, "core instance"), r.Name()
		item, ok := instance[name]
		if !ok || item.sort != core {
			r.Fail("core instance %d has no %s %q", index, core, name)
		}
		c.define(r, &CoreAlias{core, index, name})
		c.addCore(item)
	case kind == aliasOuter:
		count, index := r.Uint32(), r.Uint32()
		c.aliasOuter(r, c.scope, sort, core, count, index)
		if sort == SortComponent || sort == SortCore && core == CoreModule {
			c.define(r, &OuterAlias{sort, core, count, index})
		}
	default:
		r.Fail("kind %#x of an alias does not exist for its sort", kind)
	}
}

func readSort(r *reader) (sort Sort, core CoreSort) {
	if sort = Sort(r.Byte()); sort == SortCore {
		core = CoreSort(r.Byte())
	}
	if sort > SortInstance {
		r.Fail("sort %#x does not exist", byte(sort))
	}
	return sort, core
}

// aliasExport adds the export of an instance to its index space.
func (d *decoder) aliasExport(r *reader, s *scope, sort Sort, core CoreSort, index uint32, name string) Extern {
	e, ok := at(r, s.instances, index, "instance").lookup(name)
	if !ok {
		r.Fail("instance %d has no export %q", index, name)
	}
	if e.Sort != sort || sort == SortCore && core != CoreModule {
		r.Fail("export %q of instance %d is a %s, and aliased as a %s", name, index, e.Sort, sort)
	}
	d.countTypes(r, 1)
	s.add(e)
	return e
}

// aliasOuter adds an item of an enclosing scope to its index space.
func (d *decoder) aliasOuter(r *reader, s *scope, sort Sort, core CoreSort, count, index uint32) {
	from := s.enclosing(r, count)
	d.countTypes(r, 1)
	switch {
	case sort == SortType:
		t := at(r, from.types, index, "type")
		if measureOf(t).resources && s.leavesComponent(count) {
			r.Fail("type %d of an enclosing component mentions resources, which only imports can bring in", index)
		}
		s.types = append(s.types, t)
	case sort == SortComponent:
		s.components = append(s.components, at(r, from.components, index, "component"))
	case sort == SortCore && core == CoreModule:
		s.modules = append(s.modules, at(r, from.modules, index, "core module"))
	case sort == SortCore && core == CoreType:
		s.coreTypes = append(s.coreTypes, at(r, from.coreTypes, index, "core type"))
	default:
		r.Fail("an alias of an enclosing component is a %s: only types, core modules and components can be", sort)
	}
}

// leavesComponent reports whether count scopes further out is outside of a component that s is in.
func (s *scope) leavesComponent(count uint32) bool {
	for range count {
		if s.kind == inComponent {
			return true
		}
		s = s.parent
	}
	return false
}

func (c *componentDecoder) importDefinition(r *reader) {
	e := c.importDeclaration(r, c.scope)
	c.component.Imports = append(c.component.Imports, e)
	if e.Sort != SortType || e.Resource != nil {
		c.define(r, &Import{e})
	}
}

func (c *componentDecoder) exportDefinition(r *reader) {
	name := readExternName(r)
	ref, e := c.ref(r, name.Name)
	if r.Flag("the mark of an export's type") {
		ascribed := c.externType(r, c.scope, name)
		m := newMatcher(c.decoder, r)
		for _, resource := range c.resources[ascribed.before:] {
			m.bound[resource] = nil
		}
		m.extern(&ascribed.Extern, &e)
		e = ascribed.Extern
	} else {
		e = c.named(r, e, name)
		c.add(e)
	}
	c.exports.add(r, "export", name, &e)
	c.checkExport(r, c.scope, &e)
	c.component.Exports = append(c.component.Exports, e)
	if e.Sort != SortType || e.Resource != nil {
		c.define(r, &Export{ref, e})
	}
}

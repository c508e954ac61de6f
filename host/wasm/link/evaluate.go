package link

import (
	"context"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// scope is a component instance while its definitions are evaluated, with its index spaces.
type scope struct {
	component *component.Component
	// parent is the instance that encloses the component's definition, instantiator the one that instantiates it.
	parent, instantiator *scope
	number               int // in Program.components
	resources            map[*component.Resource]*resource

	modules       []int // IDs
	coreInstances []coreInstance
	coreItems     [component.CoreTag + 1][]coreItem
	components    []nested
	instances     []exports
	functions     []*function
	exports       exports
}

// coreInstance is the instance of a core module, or is made of items that exist.
type coreInstance struct {
	// number identifies the core instance; 0 if it has none yet.
	number int
	// module belongs to an instance of a module, items to other instances.
	module *Module
	items  map[string]coreItem
}

// item returns the export of that name.
func (c *coreInstance) item(name string) (coreItem, bool) {
	if c.module == nil {
		item, ok := c.items[name]
		return item, ok
	}
	typ, ok := c.module.Exports[name]
	// A module must not get at what rewriting has added to another one, such as its fuel.
	return coreItem{c.number, name, typ}, ok && !rewrite.Reserved(name)
}

// nested is a component with the instance that defines it.
type nested struct {
	component *component.Component
	parent    *scope
}

// exports are those of a component instance, or a similar group of items: *function, exports, nested, *resource, or int
// for a core module.
type exports map[string]any

// evaluate evaluates the definitions of a component. arg returns the argument for an import.
func (b *builder) evaluate(s *scope, arg func(*component.Extern) (any, error)) error {
	if s.number = len(b.program.components); s.number == maxComponents {
		return fmt.Errorf("it has more than %d component instances", maxComponents)
	}
	s.resources, s.exports = map[*component.Resource]*resource{}, exports{}
	b.program.components = append(b.program.components, s.resources)
	for _, definition := range s.component.Definitions {
		err := b.count(1)
		if err != nil {
			return err
		}
		switch d := definition.(type) {
		case *component.Module:
			s.modules = append(s.modules, d.ID)
		case *component.Instantiate:
			err = b.instantiate(s, d)
		case *component.CoreExports:
			err = b.coreExports(s, d)
		case *component.CoreAlias:
			err = s.coreAlias(d)
		case *component.Nested:
			s.components = append(s.components, nested{d.Component, s})
		case *component.InstantiateNested:
			err = b.instantiateNested(s, d)
		case *component.Exports:
			err = b.makeInstance(s, d)
		case *component.Alias:
			err = s.add(d.Sort, s.instances[d.Instance][d.Name])
		case *component.OuterAlias:
			err = s.outerAlias(d)
		case *component.Lift:
			err = b.lift(s, d)
		case *component.Lower:
			err = b.lower(s, d)
		case *component.Builtin:
			s.addFunction(b.builtin(s, d))
		case *component.DefineResource:
			b.defineResource(s, d)
		case *component.Import:
			err = b.bindImport(s, d, arg)
		case *component.Export:
			err = b.bindExport(s, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts items that are evaluated. A small file can define components that multiply them.
func (b *builder) count(items int) error {
	if b.evaluated += items; b.evaluated > maxEvaluated {
		return fmt.Errorf("its component instances have more than %d definitions and exports", maxEvaluated)
	}
	return nil
}

// add appends an item to the index space of its sort. Types have none.
func (s *scope) add(sort component.Sort, item any) error {
	ok := true
	switch sort {
	case component.SortFunc:
		s.functions, ok = appendItem(s.functions, item)
	case component.SortInstance:
		s.instances, ok = appendItem(s.instances, item)
	case component.SortComponent:
		s.components, ok = appendItem(s.components, item)
	case component.SortCore:
		s.modules, ok = appendItem(s.modules, item)
	}
	if !ok {
		return fmt.Errorf("a %s is missing: the component is not valid", sort)
	}
	return nil
}

func appendItem[T any](items []T, item any) ([]T, bool) {
	t, ok := item.(T)
	return append(items, t), ok
}

// get returns the item that ref names, nil for a type that is not a resource.
func (s *scope) get(ref component.Ref) any {
	switch ref.Sort {
	case component.SortFunc:
		return s.functions[ref.Index]
	case component.SortInstance:
		return s.instances[ref.Index]
	case component.SortComponent:
		return s.components[ref.Index]
	case component.SortCore:
		return s.modules[ref.Index]
	}
	if r := s.resources[ref.Resource]; r != nil {
		return r
	}
	return nil
}

// bindResources records which resource types an item has that gets the type e.
func (b *builder) bindResources(s *scope, e *component.Extern, item any) error {
	if e.Resource != nil && s.resources[e.Resource] == nil {
		if r, ok := item.(*resource); ok {
			s.resources[e.Resource] = r
		}
	}
	if e.Sort == component.SortInstance {
		if err := b.count(len(e.Instance.Exports)); err != nil {
			return err
		}
		i, _ := item.(exports)
		for n := range e.Instance.Exports {
			member := &e.Instance.Exports[n]
			if err := b.bindResources(s, member, i[member.Name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) bindImport(
	s *scope, d *component.Import, arg func(*component.Extern) (any, error),
) error {
	item, err := arg(&d.Extern)
	if err != nil {
		return err
	}
	if err := b.bindResources(s, &d.Extern, item); err != nil {
		return err
	}
	return s.add(d.Extern.Sort, item)
}

func (b *builder) bindExport(s *scope, d *component.Export) error {
	item := s.get(d.Ref)
	if err := b.bindResources(s, &d.Extern, item); err != nil {
		return err
	}
	s.exports[d.Extern.Name] = item
	return s.add(d.Extern.Sort, item)
}

func (b *builder) makeInstance(s *scope, d *component.Exports) error {
	if err := b.count(len(d.Exports)); err != nil {
		return err
	}
	i := exports{}
	for _, ref := range d.Exports {
		i[ref.Name] = s.get(ref)
	}
	s.instances = append(s.instances, i)
	return nil
}

func (s *scope) outerAlias(d *component.OuterAlias) error {
	from := s
	for range d.Count {
		from = from.parent
	}
	return s.add(d.Sort, from.get(component.Ref{Sort: d.Sort, Core: d.Core, Index: d.Index}))
}

func (b *builder) instantiateNested(s *scope, d *component.InstantiateNested) error {
	if err := b.count(len(d.Args)); err != nil {
		return err
	}
	args := exports{}
	for _, ref := range d.Args {
		args[ref.Name] = s.get(ref)
	}
	of := s.components[d.Component]
	inner := &scope{component: of.component, parent: of.parent, instantiator: s}
	err := b.evaluate(inner, func(e *component.Extern) (any, error) { return args[e.Name], nil })
	if err != nil {
		return err
	}
	s.instances = append(s.instances, inner.exports)
	return b.bindResources(s, &component.Extern{Sort: component.SortInstance, Instance: d.Type}, inner.exports)
}

func (b *builder) instantiate(s *scope, d *component.Instantiate) error {
	if err := b.count(len(d.Args)); err != nil {
		return err
	}
	next := step{id: s.modules[d.Module], args: map[string]int{}}
	for _, arg := range d.Args {
		number, err := b.coreNumber(&s.coreInstances[arg.Index])
		if err != nil {
			return err
		}
		name := arg.Name
		switch name {
		case rewrite.ImportModule:
			return fmt.Errorf("it names an argument %q, which is reserved: rename it", name)
		case "":
			name = rewrite.EmptyModule
		}
		next.args[name] = number
	}
	module := &b.Modules[next.id]
	if b.elements += module.Elements; b.elements > maxElements {
		return fmt.Errorf("the tables of its core modules may get more than %d elements", maxElements)
	}
	number, err := b.addStep(next)
	if err != nil {
		return err
	}
	s.coreInstances = append(s.coreInstances, coreInstance{number: number, module: module})
	return nil
}

func (b *builder) coreExports(s *scope, d *component.CoreExports) error {
	if err := b.count(len(d.Exports)); err != nil {
		return err
	}
	items := make(map[string]coreItem, len(d.Exports))
	for _, ref := range d.Exports {
		if ref.Core > component.CoreGlobal {
			return fmt.Errorf("a core instance has the %s %q, which is not supported", ref.Core, ref.Name)
		}
		items[ref.Name] = s.coreItems[ref.Core][ref.Index]
	}
	s.coreInstances = append(s.coreInstances, coreInstance{items: items})
	return nil
}

func (s *scope) coreAlias(d *component.CoreAlias) error {
	item, ok := s.coreInstances[d.Instance].item(d.Name)
	if !ok || d.Sort > component.CoreTag || item.typ.Kind != byte(d.Sort) {
		return fmt.Errorf("a core instance has no %s %q", d.Sort, strings.ToValidUTF8(d.Name, "?"))
	}
	s.coreItems[d.Sort] = append(s.coreItems[d.Sort], item)
	return nil
}

func (s *scope) addFunction(item coreItem) {
	s.coreItems[component.CoreFunc] = append(s.coreItems[component.CoreFunc], item)
}

// coreNumber returns the number of a core instance. One that is made of items gets a module that exports them again.
func (b *builder) coreNumber(c *coreInstance) (int, error) {
	if c.number > 0 {
		return c.number, nil
	}
	code, sources, err := b.reexport(c.items)
	if err != nil {
		return 0, err
	}
	c.number, err = b.addStep(step{id: -1, code: code, args: sources})
	return c.number, err
}

// frame resolves the options of a function.
func (b *builder) frame(s *scope, t *component.Func, o *component.Options) (frame, error) {
	if t.Async || o.Async || o.Callback >= 0 {
		return frame{}, component.ErrAsync
	}
	f := frame{typ: t, owner: s.number, encoding: o.Encoding, memory: -1, realloc: -1}
	if o.Memory >= 0 {
		f.memory = b.memoryNumber(s.coreItems[component.CoreMemory][o.Memory])
	}
	if o.Realloc >= 0 {
		f.realloc = b.functionNumber(s.coreItems[component.CoreFunc][o.Realloc])
	}
	return f, nil
}

func (b *builder) lift(s *scope, d *component.Lift) error {
	frame, err := b.frame(s, d.Type, &d.Options)
	if err != nil {
		return err
	}
	l := &lifted{frame: frame, core: b.functionNumber(s.coreItems[component.CoreFunc][d.Func]), postReturn: -1}
	if d.Options.PostReturn >= 0 {
		l.postReturn = b.functionNumber(s.coreItems[component.CoreFunc][d.Options.PostReturn])
	}
	s.functions = append(s.functions, &function{lifted: l, owner: s})
	return nil
}

func (b *builder) lower(s *scope, d *component.Lower) error {
	frame, err := b.frame(s, d.Type, &d.Options)
	if err != nil {
		return err
	}
	target := s.functions[d.Func]
	call := b.program.lowered(frame, target)
	if target.lifted != nil && (s.within(target.owner) || target.owner.within(s)) {
		call = func(context.Context, api.Module, []uint64) { panic(errEntered) }
	}
	params, results := d.Type.CoreSignature()
	s.addFunction(b.hostFunction(call, params, results))
	return nil
}

// within reports whether a component instance is outer, or one that outer has instantiated, directly or not. Between
// such instances no calls are allowed: the outer one runs as long as the inner one does.
func (s *scope) within(outer *scope) bool {
	for ; s != nil; s = s.instantiator {
		if s == outer {
			return true
		}
	}
	return false
}

func (b *builder) defineResource(s *scope, d *component.DefineResource) {
	r := b.addResource(d.Resource.Name, s.number)
	if d.Destructor >= 0 {
		r.destructor = b.functionNumber(s.coreItems[component.CoreFunc][d.Destructor])
	}
	s.resources[d.Resource] = r
}

// Package link links the core modules of a component in wazero, which has no components, and calls its exports.
//
// Compile resolves the definitions of a component once: which core modules are instantiated, with what as imports, and
// what each function of a component refers to. The result is a Program. Its instances share nothing but code. Lowered
// functions and built-ins become the functions of one host module. A core instance that is made of exports becomes a
// module that imports and exports them again.
package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/component/canon"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// Module is a core module of a component, compiled or interpreted.
type Module struct {
	Compiled wazero.CompiledModule
	// Exports are its exports by name, those of the rewritten module or of its stub.
	Exports map[string]rewrite.Export
	// Elements bounds the elements that its tables can have.
	Elements int
}

// HostFunc is a function of the host that a component imports. Arguments and result are values as package component
// describes them. A panic with an error ends the call.
type HostFunc func(ctx context.Context, args []any) any

// Options are the sandbox's parts of a Program.
type Options struct {
	Runtime wazero.Runtime
	// Modules are the core modules by their IDs.
	Modules []Module
	// Import returns the function of an imported interface, or nil if the host does not have it: the guest traps when
	// it calls that function. It returns an error if the host does not have the interface.
	Import func(instance, function string) (HostFunc, error)
	// Current returns the instance that runs in ctx.
	Current func(ctx context.Context) *Instance
}

// Program is a linked component. It is immutable and safe for concurrent use.
type Program struct {
	component *component.Component
	layouts   canon.Layouts
	runtime   wazero.Runtime
	current   func(context.Context) *Instance
	// steps are the instantiations of core modules in order. The core instance of step n has the number n+1; 0 is the
	// host module.
	steps []step
	host  api.Module
	// components are the component instances: the component itself and those nested in it.
	components []map[*component.Resource]*resource
	resources  []*resource
	// compiled are the modules that Compile made: the host module and those of steps.
	compiled []wazero.CompiledModule
	// functions and memories are the core functions and memories that lifted and lowered functions refer to.
	functions []coreItem
	memories  []coreItem
	exports   map[string]*lifted
}

// step instantiates a core module.
type step struct {
	// id is the module's ID, or -1. code is set instead for a module made by reexport.
	id   int
	code wazero.CompiledModule
	// args are the numbers of core instances by the names of the module's imports.
	args map[string]int
}

// coreItem is the export of a core instance.
type coreItem struct {
	instance int
	name     string
	typ      rewrite.Export
}

// resource is a resource type.
type resource struct {
	number int
	name   string
	// owner is the component instance that defines it, -1 for a resource of the host.
	owner int
	// destructor is a number in Program.functions, -1 for none.
	destructor int
}

// function is a function of a component instance or of the host. One of lifted and host is set, or neither for a
// function that the host does not have.
type function struct {
	name   string
	lifted *lifted
	owner  *scope // of lifted
	host   HostFunc
}

// lifted is a function that a core function implements.
type lifted struct {
	frame
	core, postReturn int // numbers in Program.functions; -1 for none
}

// frame describes how a function's values are converted.
type frame struct {
	typ *component.Func
	// owner is the component instance whose function it is, or that calls it.
	owner    int
	encoding component.Encoding
	// memory is a number in Program.memories, realloc one in Program.functions; -1 for none.
	memory, realloc int
}

// Limits of a program. Nested components can multiply what a small file defines.
const (
	maxInstances  = 1_000   // of core modules
	maxComponents = 1_000   // component instances
	maxEvaluated  = 300_000 // definitions, arguments and exports, in all component instances
	maxElements   = 2 * rewrite.MaxElements
)

// Compile links a component. The runtime must have the module that rewritten modules import. The runtime must be closed
// before the Program.
func Compile(ctx context.Context, c *component.Component, o *Options) (_ *Program, err error) {
	program := &Program{component: c, runtime: o.Runtime, current: o.Current, exports: map[string]*lifted{}}
	b := &builder{Options: o, ctx: ctx, program: program}
	b.hostModule = o.Runtime.NewHostModuleBuilder("component")
	defer func() {
		if err != nil {
			err = errors.Join(err, b.program.Close(ctx))
		}
	}()
	root := &scope{component: c}
	if err := b.evaluate(root, b.hostItem); err != nil {
		return nil, err
	}
	b.export("", root.exports)
	host, err := b.hostModule.Compile(ctx)
	if err != nil {
		return nil, err
	}
	b.program.compiled = append(b.program.compiled, host)
	// The builder's own Instantiate returns a module that cannot be imported.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	if b.program.host, err = o.Runtime.InstantiateModule(ctx, host, config); err != nil {
		return nil, err
	}
	return b.program, nil
}

// Check resolves a component as Compile does, without compiling anything, and takes for granted that the host has all
// functions that it imports. It returns the size of the linear memories with which an instance starts, in bytes. An
// error means that Compile would fail, or that a core instance lacks what is taken from it.
func Check(c *component.Component) (memory int64, err error) {
	modules := c.CoreModules()
	b := &builder{program: &Program{component: c, exports: map[string]*lifted{}}, checks: true, Options: &Options{
		Modules: make([]Module, len(modules)),
		Import:  func(string, string) (HostFunc, error) { return nil, nil },
	}}
	memories := make([]int64, len(modules))
	for _, m := range modules {
		module := &b.Modules[m.ID]
		if module.Exports, err = rewrite.Exports(m.Code); err != nil {
			return 0, err
		}
		memories[m.ID], module.Elements, err = rewrite.Measure(m.Code, rewrite.MaxElements/len(modules))
		if err != nil {
			return 0, err
		}
	}
	if err := b.evaluate(&scope{component: c}, b.hostItem); err != nil {
		return 0, err
	}
	for _, s := range b.program.steps {
		if s.id >= 0 {
			memory += max(memories[s.id], 0)
		}
	}
	return memory, nil
}

// Close frees the code of the modules that Compile made. wazero finds that of a host module by the module's address:
// kept, it would become the code of another component's host module, once that is allocated at the same address.
func (p *Program) Close(ctx context.Context) (err error) {
	for _, module := range p.compiled {
		err = errors.Join(err, module.Close(ctx))
	}
	p.compiled = nil
	return err
}

// export adds the functions that are exported, those of an instance with its name as prefix.
func (b *builder) export(prefix string, items exports) {
	for name, item := range items {
		switch item := item.(type) {
		case *function:
			if item.lifted != nil {
				b.program.exports[prefix+name] = item.lifted
			}
		case exports:
			if prefix == "" {
				b.export(name+"#", item)
			}
		}
	}
}

// builder builds a Program.
type builder struct {
	*Options
	ctx     context.Context
	program *Program
	// checks is true for Check, which compiles nothing and has no hostModule.
	checks     bool
	hostModule wazero.HostModuleBuilder
	hostItems  int
	evaluated  int
	elements   int
	// functions and memories are the numbers in Program.
	functions, memories map[coreKey]int
}

type coreKey struct {
	instance int
	name     string
}

// hostFunction adds a function to the host module.
func (b *builder) hostFunction(f api.GoModuleFunc, params, results []byte) coreItem {
	name := strconv.Itoa(b.hostItems)
	b.hostItems++
	if !b.checks {
		b.hostModule.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
	}
	return coreItem{name: name, typ: rewrite.Export{Kind: byte(component.CoreFunc), Params: params, Results: results}}
}

// functionNumber returns the number of a core function in Program.functions.
func (b *builder) functionNumber(item coreItem) int {
	return number(&b.functions, &b.program.functions, item)
}

func (b *builder) memoryNumber(item coreItem) int {
	return number(&b.memories, &b.program.memories, item)
}

func number(numbers *map[coreKey]int, items *[]coreItem, item coreItem) int {
	key := coreKey{item.instance, item.name}
	if n, ok := (*numbers)[key]; ok {
		return n
	}
	if *numbers == nil {
		*numbers = map[coreKey]int{}
	}
	n := len(*items)
	(*numbers)[key], *items = n, append(*items, item)
	return n
}

// addStep adds an instantiation and returns the number of the core instance.
func (b *builder) addStep(s step) (int, error) {
	if len(b.program.steps) == maxInstances {
		return 0, fmt.Errorf("it has more than %d instances of core modules", maxInstances)
	}
	b.program.steps = append(b.program.steps, s)
	return len(b.program.steps), nil
}

// hostItem returns the host's item for an import of the component.
func (b *builder) hostItem(e *component.Extern) (any, error) {
	switch {
	case e.Sort == component.SortInstance:
		return b.hostInterface(e)
	case e.Sort == component.SortFunc:
		return nil, fmt.Errorf("it imports the function %q by itself: the host offers functions in interfaces only", e.Name)
	case e.Sort == component.SortType && e.Resource != nil:
		return b.hostResource(e), nil
	case e.Sort == component.SortType:
		return nil, nil
	}
	return nil, fmt.Errorf("it imports the %s %q, and the host offers interfaces with functions only", e.Sort, e.Name)
}

func (b *builder) hostInterface(e *component.Extern) (any, error) {
	i := exports{}
	for _, member := range e.Instance.Exports {
		switch {
		case member.Sort == component.SortFunc:
			host, err := b.Import(e.Name, member.Name)
			if err != nil {
				return nil, err
			}
			i[member.Name] = &function{name: e.Name + "#" + member.Name, host: host}
		case member.Sort == component.SortType && member.Resource != nil:
			i[member.Name] = b.hostResource(&member)
		case member.Sort != component.SortType:
			return nil, fmt.Errorf("it imports %q with the %s %q, and the host offers functions only", e.Name, member.Sort,
				member.Name)
		}
	}
	return i, nil
}

// hostResource returns a resource type of the host. bindResources ignores it if the type is already bound.
func (b *builder) hostResource(e *component.Extern) *resource { return b.addResource(e.Name, -1) }

func (b *builder) addResource(name string, owner int) *resource {
	r := &resource{number: len(b.program.resources), name: name, owner: owner, destructor: -1}
	b.program.resources = append(b.program.resources, r)
	return r
}

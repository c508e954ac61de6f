package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/component/canon"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// Component returns the component.
func (i *Instance) Component() *component.Component { return i.program.component }

// Exports reports whether the component exports a function of that name: "run", or "interface#run" for one of an
// interface.
func (i *Instance) Exports(name string) bool { return i.program.exports[name] != nil }

// Call calls an exported function. Arguments and result are values as package component describes them. After an error
// the instance is unusable.
func (i *Instance) Call(ctx context.Context, name string, args []any) (result any, err error) {
	l := i.program.exports[name]
	if l == nil {
		return nil, fmt.Errorf("the component exports no function %q", name)
	}
	if want := len(l.typ.Params); len(args) != want {
		return nil, fmt.Errorf("the function %q takes %d arguments and gets %d", name, want, len(args))
	}
	if i.failed != nil {
		return nil, fmt.Errorf("an earlier call left the instance unusable: %w", i.failed)
	}
	defer func() {
		if r := recover(); r != nil { // as the runtime does for functions that the guest calls
			var ok bool
			if err, ok = r.(error); !ok {
				panic(r)
			}
		}
		if err != nil {
			i.failed = err
		}
	}()
	size := int64(0)
	return i.call(ctx, l, args, func(n int64) error {
		size += n
		return i.host.CheckResult(size)
	})
}

// call calls a lifted function. count counts what is lifted, if it is not nil.
func (i *Instance) call(ctx context.Context, l *lifted, args []any, count func(int64) error) (any, error) {
	owner := &i.components[l.owner]
	if owner.entered {
		return nil, errEntered
	}
	owner.entered = true
	defer func() { owner.entered = false }()
	f, err := i.newFrame(ctx, &l.frame)
	if err != nil {
		return nil, err
	}
	owner.pinned = true
	stack, err := f.LowerParams(l.typ, args)
	owner.pinned = false
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if len(stack) == 0 {
		stack = make([]uint64, 1) // for the result
	}
	if err := i.invoke(ctx, l.core, stack); err != nil {
		return nil, err
	}
	f.Count = count
	result, err := f.LiftResult(l.typ, stack)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if l.postReturn >= 0 {
		owner.pinned = true
		err := i.invoke(ctx, l.postReturn, stack)
		owner.pinned = false
		if err != nil {
			return nil, fmt.Errorf("post-return: %w", err)
		}
	}
	return result, f.EndCall()
}

var (
	errEntered = errors.New("a component is called while it runs, which components may not be")
	errPinned  = errors.New("a realloc or post-return function calls an import, which it may not")
)

// newFrame returns a frame for one call of a function.
func (i *Instance) newFrame(ctx context.Context, f *frame) (*canon.Frame, error) {
	c := &canon.Frame{Encoding: f.encoding, Handles: i.components[f.owner].handles, Layouts: &i.program.layouts,
		Charge: i.host.Charge, Reserve: i.reserve}
	if f.memory >= 0 {
		var err error
		if c.Memory, err = i.memory(f.memory); err != nil {
			return nil, err
		}
	}
	if f.realloc >= 0 {
		c.Realloc = func(align, size uint32) (uint32, error) {
			stack := [4]uint64{0, 0, uint64(align), uint64(size)}
			if err := i.invoke(ctx, f.realloc, stack[:]); err != nil {
				return 0, fmt.Errorf("realloc: %w", err)
			}
			return uint32(stack[0]), nil
		}
	}
	return c, nil
}

// lowered returns the function of the host module for a function that a component lowers.
func (p *Program) lowered(f frame, target *function) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		i := p.current(ctx)
		if err := i.callLowered(ctx, &f, target, stack); err != nil {
			panic(err)
		}
	}
}

// callLowered calls target for the guest, which passes core values.
func (i *Instance) callLowered(ctx context.Context, f *frame, target *function, stack []uint64) error {
	owner := &i.components[f.owner]
	if owner.pinned {
		return errPinned
	}
	if target.host == nil && target.lifted == nil {
		return fmt.Errorf("it calls %s, which the host does not have", target.name)
	}
	i.host.Charge(fuel.CallSteps)
	before := i.reserved
	c, err := i.newFrame(ctx, f)
	if err != nil {
		return err
	}
	args, err := c.LiftParams(f.typ, stack)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", target.name, err)
	}
	var result any
	if target.host != nil {
		result = target.host(ctx, args)
	} else if result, err = i.call(ctx, target.lifted, args, nil); err != nil {
		return err
	}
	owner.pinned = true
	err = c.LowerResult(f.typ, result, stack)
	owner.pinned = false
	if err != nil {
		return fmt.Errorf("result of %s: %w", target.name, err)
	}
	// Arguments and result are garbage now: what a resource of the host keeps of them, its interface bounds.
	i.host.Release(i.reserved - before)
	i.reserved = before
	return c.EndCall()
}

// builtin returns the core function of a built-in.
func (b *builder) builtin(s *scope, d *component.Builtin) coreItem {
	owner, current := s.number, b.program.current
	var do func(ctx context.Context, i *Instance, handles *canon.Handles, stack []uint64) error
	resource := s.resources[d.Resource]
	switch d.Op {
	case component.OpResourceNew:
		do = func(_ context.Context, i *Instance, handles *canon.Handles, stack []uint64) error {
			handle, err := handles.New(i.types[resource.number], uint32(stack[0]))
			stack[0] = uint64(handle)
			return err
		}
	case component.OpResourceRep:
		do = func(_ context.Context, i *Instance, handles *canon.Handles, stack []uint64) error {
			rep, err := handles.Rep(i.types[resource.number], uint32(stack[0]))
			stack[0] = uint64(rep)
			return err
		}
	case component.OpResourceDrop:
		do = func(ctx context.Context, i *Instance, handles *canon.Handles, stack []uint64) error {
			before := i.dropping
			i.dropping = owner
			defer func() { i.dropping = before }()
			return handles.Drop(ctx, i.types[resource.number], uint32(stack[0]))
		}
	default:
		do = func(context.Context, *Instance, *canon.Handles, []uint64) error {
			return fmt.Errorf("it calls the built-in %s, which the host does not have", d.Name)
		}
	}
	call := func(ctx context.Context, _ api.Module, stack []uint64) {
		i := current(ctx)
		i.host.Charge(fuel.CallSteps)
		state := &i.components[owner]
		err := errPinned
		if !state.pinned || d.Op == component.OpResourceRep {
			err = do(ctx, i, state.handles, stack)
		}
		if err != nil {
			panic(err)
		}
	}
	return b.hostFunction(call, d.Params, d.Results)
}

// destructor returns the destructor of a resource type that a component instance defines.
func (i *Instance) destructor(r *resource) func(context.Context, uint32) error {
	if r.destructor < 0 {
		return nil
	}
	return func(ctx context.Context, rep uint32) error {
		if owner := &i.components[r.owner]; i.dropping != r.owner {
			if owner.entered {
				return errEntered
			}
			owner.entered = true
			defer func() { owner.entered = false }()
		}
		return i.invoke(ctx, r.destructor, []uint64{uint64(rep)})
	}
}

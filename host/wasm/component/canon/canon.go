// Package canon is the canonical ABI: it converts values between the host and the guests that are components. Lifting
// turns core values and bytes of a guest's memory into Go values, lowering the reverse; package component says which Go
// values a type has. Everything that a guest passes is checked: pointers and lengths, strings, characters, case numbers
// and handles. An error means that the guest, or a value of the host, breaks a rule; the call has to end then.
//
// Source: https://github.com/WebAssembly/component-model, design/mvp/CanonicalABI.md, for synchronous functions and
// 32-bit memories.
package canon

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// Memory is a guest's linear memory. Read returns a view, through which the guest's memory can be written; it is valid
// until the guest runs again.
type Memory interface {
	Read(offset, length uint32) ([]byte, bool)
}

// Frame converts the arguments and the result of one call between a guest and the host. Fields that the function's
// types do not need may be nil. A Frame must not be used by two goroutines at once.
type Frame struct {
	Memory   Memory
	Encoding component.Encoding
	// Realloc calls the guest's realloc for new memory.
	Realloc func(align, size uint32) (uint32, error)
	// Handles is the handle table of the component instance.
	Handles *Handles
	// Layouts are those of the component. Nil derives them anew in each method.
	Layouts *Layouts
	// Charge charges steps for the conversion. It panics to end the call.
	Charge func(steps int64)
	// Reserve reserves host memory for values and the buffers in which they are composed, before it is allocated. Parts
	// of a lifted value may all point at the same memory of the guest, so a value can take any multiple of that memory:
	// Reserve is what bounds it.
	Reserve func(bytes int64) error
	// Count gets the bytes of strings and byte lists and the number of elements of other lists that are lifted, before
	// they are allocated. A text form of the value has at least as many bytes.
	Count func(n int64) error

	lent     []uint32 // handles of the guest that are lent to the call
	borrowed int      // handles lent to the guest that it has not dropped
}

// LiftParams returns the arguments of a function that the guest calls.
func (f *Frame) LiftParams(t *component.Func, flat []uint64) ([]any, error) {
	l, err := f.layouts().params(t)
	if err != nil {
		return nil, err
	}
	args, err := f.lift(l, flat, component.MaxFlatParams)
	if err != nil {
		return nil, err
	}
	return args.([]any), nil
}

// LowerResult converts the result of a function that the guest called. flat is the stack of the call: it holds the core
// arguments, the last of which is the address of a result in memory, and gets the core result. value is ignored if the
// function has no result.
func (f *Frame) LowerResult(t *component.Func, value any, flat []uint64) error {
	if t.Result == nil {
		return nil
	}
	l, err := f.layouts().of(t.Result)
	if err != nil {
		return err
	}
	f.charge(l.values * fuel.ValueSteps)
	if !l.inMemory(component.MaxFlatResults) {
		flat[0] = 0
		return f.lowerFlat(l, value, flat)
	}
	in, err := f.layouts().params(t)
	if err != nil {
		return err
	}
	last := in.flat
	if in.inMemory(component.MaxFlatParams) {
		last = 1
	}
	pointer := uint32(flat[last])
	if _, err := f.view(pointer, uint64(l.size), l.align); err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	return f.storeAt(l, value, pointer)
}

// LowerParams returns the core arguments for a function of the guest.
func (f *Frame) LowerParams(t *component.Func, args []any) ([]uint64, error) {
	l, err := f.layouts().params(t)
	if err != nil {
		return nil, err
	}
	f.charge(l.values * fuel.ValueSteps)
	if l.inMemory(component.MaxFlatParams) {
		pointer, err := f.allocate(l.align, uint64(l.size))
		if err != nil {
			return nil, err
		}
		return []uint64{uint64(pointer)}, f.storeAt(l, args, pointer)
	}
	flat := make([]uint64, l.flat)
	return flat, f.lowerFlat(l, args, flat)
}

// LiftResult returns the result of a function of the guest, nil if it has none.
func (f *Frame) LiftResult(t *component.Func, flat []uint64) (any, error) {
	if t.Result == nil {
		return nil, nil
	}
	l, err := f.layouts().of(t.Result)
	if err != nil {
		return nil, err
	}
	return f.lift(l, flat, component.MaxFlatResults)
}

// EndCall ends the call: handles that were lent to it are free again. It returns an error if the guest still has
// handles that it borrowed for the call.
func (f *Frame) EndCall() error {
	for _, index := range f.lent {
		f.Handles.entries[index].lends--
	}
	f.lent = nil
	if f.borrowed > 0 {
		return fmt.Errorf("%d borrowed handles were not dropped before the call ended", f.borrowed)
	}
	return nil
}

// lift lifts a value from flat, or from the memory that flat points to if it has more than limit core values.
func (f *Frame) lift(l *layout, flat []uint64, limit int) (any, error) {
	f.charge(l.values * fuel.ValueSteps)
	if err := f.reserve(l.goBytes); err != nil {
		return nil, err
	}
	if !l.inMemory(limit) {
		return f.liftFlat(l, flat)
	}
	view, err := f.view(uint32(flat[0]), uint64(l.size), l.align)
	if err != nil {
		return nil, err
	}
	return f.load(l, view)
}

// view returns length bytes of the guest's memory.
func (f *Frame) view(offset uint32, length uint64, align uint32) ([]byte, error) {
	if offset&(align-1) != 0 {
		return nil, fmt.Errorf("address %#x is not a multiple of %d", offset, align)
	}
	if length > maxByteLength {
		return nil, fmt.Errorf("%d bytes at %#x are more than a value can have (%d)", length, offset, maxByteLength)
	}
	if f.Memory == nil {
		return nil, fmt.Errorf("the function's type needs the option memory, which the component does not give")
	}
	view, ok := f.Memory.Read(offset, uint32(length))
	if !ok {
		return nil, fmt.Errorf("%d bytes at %#x are outside of the guest's memory", length, offset)
	}
	return view, nil
}

// allocate returns memory that the guest allocates.
func (f *Frame) allocate(align uint32, size uint64) (uint32, error) {
	if size > maxByteLength {
		return 0, fmt.Errorf("a value of %d bytes is larger than a guest can get (%d)", size, maxByteLength)
	}
	if f.Realloc == nil {
		return 0, fmt.Errorf("the function's type needs the option realloc, which the component does not give")
	}
	pointer, err := f.Realloc(align, uint32(size))
	if err != nil {
		return 0, err
	}
	if _, err := f.view(pointer, size, align); err != nil {
		return 0, fmt.Errorf("the guest's realloc: %w", err)
	}
	return pointer, nil
}

func (f *Frame) layouts() *Layouts {
	if f.Layouts == nil {
		return &Layouts{}
	}
	return f.Layouts
}

func (f *Frame) charge(steps int64) {
	if f.Charge != nil {
		f.Charge(steps)
	}
}

func (f *Frame) reserve(bytes int64) error {
	if f.Reserve == nil {
		return nil
	}
	return f.Reserve(bytes)
}

// reserveLifted reserves bytes for n bytes of text, bytes of a list or elements, which are about to be lifted.
func (f *Frame) reserveLifted(n, bytes int64) error {
	if f.Count != nil {
		if err := f.Count(n); err != nil {
			return err
		}
	}
	return f.reserve(bytes)
}

// Package broker is what the host does for a guest: the import modules a guest may link, one per permission.
//
// The packages below it (http, file, ...) each do one privileged thing under a grant. They describe their functions with
// the types of this package, so none of them knows the Wasm runtime.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Type is a Wasm value type of a host function's signature.
type Type byte

// Value types.
const (
	I32 Type = iota
	I64
	F64
)

// Module is one import module, for example "hako:http/1". It is safe to link into many instances at once; what belongs to
// one call lives in the Call.
type Module struct {
	Name      string
	Functions []Function
}

// Function is one host function. Do receives the parameters as raw 64-bit values (i32 zero-extended) and returns the result,
// which is ignored if Result is nil. It must honour ctx. A panic in Do traps the guest.
type Function struct {
	Name   string
	Params []Type
	Result *Type
	// Late lets the guest call the function once more after its time is up; others trap it then.
	Late bool
	Do   func(ctx context.Context, call *Call, params []uint64) uint64
}

// Memory is a guest's linear memory as a host function sees it. Read returns a view that is valid until the guest runs again.
type Memory interface {
	Read(offset, length uint32) ([]byte, bool)
	Write(offset uint32, data []byte) bool
}

// Call is the host's side of one guest call: the guest's memory, the bytes waiting to be taken, and what must be closed
// when the call ends. It belongs to one goroutine at a time.
type Call struct {
	// Plugin and Tool name the caller, for errors and logs.
	Plugin, Tool string
	// Tenant is on whose behalf the guest was called; "" is that of callers without one. What a broker keeps for one tenant must not
	// reach another.
	Tenant string
	// Memory is the guest's.
	Memory Memory
	// Ask asks a person, where the caller is, to agree to something that the guest wants; an error is a no, in words for the caller.
	// Nil means that nobody can be asked. It must end with ctx, and is called from any goroutine.
	Ask func(ctx context.Context, q Question) error
	// Spend takes steps from what the call may compute. An error says that the call is over: its time or its steps are used up, and the
	// guest runs no further. Nil takes nothing.
	Spend func(steps int64) error
	// Replayed reports that an answer came from a recording, so that the result can say so.
	Replayed bool

	pending []byte
	state   map[any]io.Closer
}

// Question is something that a rule wants a person to agree to.
type Question struct {
	// Text is what would happen, for example the command line.
	Text string
	// Rule names the rule, and Reason says what it is about.
	Rule, Reason string
}

// PointerError is the trap of a guest that named bytes outside its memory.
type PointerError struct {
	Function       string
	Offset, Length uint32
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("%s: bytes %d to %d are outside the guest's memory", e.Function, e.Offset, uint64(e.Offset)+uint64(e.Length))
}

// Charge is Spend for a host function: the guest traps when the call is over. It is called before the work, and between the parts of long
// work, so that nothing goes on for long after the call's time.
func (c *Call) Charge(steps int64) {
	if c.Spend == nil {
		return
	}
	if err := c.Spend(steps); err != nil {
		panic(err)
	}
}

// Bytes copies length bytes out of the guest's memory. Bytes outside of it trap the guest.
func (c *Call) Bytes(function string, offset, length uint64) []byte {
	c.Charge(CopySteps(length))
	view, ok := c.Memory.Read(uint32(offset), uint32(length))
	if !ok {
		panic(&PointerError{function, uint32(offset), uint32(length)})
	}
	return append([]byte(nil), view...)
}

// Put copies data into the guest's memory. Bytes outside of it trap the guest.
func (c *Call) Put(function string, offset uint64, data []byte) {
	c.Charge(CopySteps(uint64(len(data))))
	if !c.Memory.Write(uint32(offset), data) {
		panic(&PointerError{function, uint32(offset), uint32(len(data))})
	}
}

// Give makes data the bytes that the guest takes next with "take", and returns their length for the host function to return.
func (c *Call) Give(data []byte) uint64 {
	c.pending = data
	return uint64(uint32(len(data)))
}

// GiveJSON is Give for a value. A value that does not marshal is a programming mistake and traps the guest.
func (c *Call) GiveJSON(v any) uint64 {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode for the guest: %w", err))
	}
	return c.Give(data)
}

// Take returns the bytes last given, once.
func (c *Call) Take() []byte {
	data := c.pending
	c.pending = nil
	return data
}

// State returns the call's value under key, made by create at its first use and closed when the call ends.
func State[T io.Closer](c *Call, key any, create func() T) T {
	if v, ok := c.state[key]; ok {
		return v.(T)
	}
	if c.state == nil {
		c.state = map[any]io.Closer{}
	}
	v := create()
	c.state[key] = v
	return v
}

// Close ends the call: everything kept with State is closed.
func (c *Call) Close() error {
	var errs []error
	for _, v := range c.state {
		errs = append(errs, v.Close())
	}
	c.state = nil
	return errors.Join(errs...)
}

// Package broker describes what the host does for a guest: the import modules that a guest may link, one per
// permission.
//
// Each package in host/brokers (httpbroker, sqlbroker, ...) performs one kind of privileged operation under a grant. It
// declares its host functions as a Module of Functions, so that it does not depend on the Wasm runtime; package sandbox
// links them. A Call connects a running host function with the guest: its memory, its limits and the state of its brokers.
package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/pdk/abi"
)

// Type is a Wasm value type of a host function's signature.
type Type byte

// Value types.
const (
	I32 Type = iota
	I64
	F64
)

// Module is one import module, for example "hako:http/1". It may be linked into many instances at once: state that
// belongs to one call lives in the Call.
type Module struct {
	Name      string
	Functions []Function
}

// Function is one host function. Do receives the parameters as raw 64-bit values (i32 zero-extended) and returns the
// result, which is ignored if Result is nil. It must honour ctx. A panic in Do traps the guest.
type Function struct {
	Name   string
	Params []Type
	Result *Type
	// Late lets the guest call the function once after its deadline. Other functions trap it then.
	Late bool
	Do   func(ctx context.Context, call *Call, params []uint64) uint64
}

// Memory is a guest's linear memory as a host function sees it. Read returns a view that is valid until the guest runs
// again.
type Memory interface {
	Read(offset, length uint32) ([]byte, bool)
	Write(offset uint32, data []byte) bool
}

// Call is the host's side of one guest call: the guest's memory, the bytes that it may fetch with "take", and the
// resources to close when the call ends. It belongs to one goroutine at a time.
type Call struct {
	// Plugin and Tool name the caller, for errors and logs.
	Plugin, Tool string
	// Tenant is the caller's tenant; "" if the caller has none. What a broker stores for one tenant must not reach
	// another.
	Tenant string
	// Memory is the guest's linear memory.
	Memory Memory
	// Ask asks the person behind the caller to approve an operation. An error is a refusal, with a text for the caller.
	// Nil means that nobody can be asked. It returns when ctx ends, and may be called from any goroutine.
	Ask func(ctx context.Context, q Question) error
	// Tools calls other tools as the caller of this call. Nil means that there are none.
	Tools Tools
	// Spend charges steps to the call's CPU limit. An error means that the time or the steps of the call are used up,
	// and that the guest must not run again. Nil means no limit.
	Spend func(steps int64) error
	// Replayed reports that a response came from a recording, so that the result can say so.
	Replayed bool

	pending      [][]byte
	state        map[any]io.Closer
	placeholders map[string]string
}

// Placeholder returns what the guest gets in place of a secret under a configuration key: a random text, the same for
// the whole call. Only the call's goroutine may use it.
func (c *Call) Placeholder(key string) string {
	if c.placeholders[key] == "" {
		if c.placeholders == nil {
			c.placeholders = map[string]string{}
		}
		c.placeholders[key] = "placeholder-" + rand.Text()
	}
	return c.placeholders[key]
}

// Placeholders returns a copy of all placeholders that the call has used, by configuration key.
func (c *Call) Placeholders() map[string]string { return maps.Clone(c.placeholders) }

// Question describes an operation that a rule wants a person to approve.
type Question struct {
	// Text shows the operation, for example the command line.
	Text string
	// Rule names the rule. Reason is the rule's own explanation.
	Rule, Reason string
}

// PointerError is the trap of a guest that passed a pointer outside its memory.
type PointerError struct {
	Function       string
	Offset, Length uint32
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("%s: bytes %d to %d are outside the guest's memory", e.Function, e.Offset,
		uint64(e.Offset)+uint64(e.Length))
}

// Charge calls Spend and traps the guest if that fails. A host function calls it before its work, and between the parts
// of long work, so that the work stops soon after the deadline.
func (c *Call) Charge(steps int64) {
	if c.Spend == nil {
		return
	}
	if err := c.Spend(steps); err != nil {
		panic(err)
	}
}

// Bytes copies length bytes out of the guest's memory. A range outside of it traps the guest.
func (c *Call) Bytes(function string, offset, length uint64) []byte {
	c.Charge(fuel.CopySteps(length))
	view, ok := c.Memory.Read(uint32(offset), uint32(length))
	if !ok {
		panic(&PointerError{function, uint32(offset), uint32(length)})
	}
	return append([]byte(nil), view...)
}

// Put copies data into the guest's memory. A range outside of it traps the guest.
func (c *Call) Put(function string, offset uint64, data []byte) {
	c.Charge(fuel.CopySteps(uint64(len(data))))
	if !c.Memory.Write(uint32(offset), data) {
		panic(&PointerError{function, uint32(offset), uint32(len(data))})
	}
}

// Give stores data for the guest's next "take", in place of what was there, and returns its length for the host
// function to return. Data may be in parts, which must not change until the guest has taken them.
func (c *Call) Give(parts ...[]byte) uint64 {
	c.pending = parts
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	return uint64(uint32(length))
}

// GiveJSON is Give for a value. A value that does not marshal is a programming mistake and traps the guest.
func (c *Call) GiveJSON(v any) uint64 {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode for the guest: %w", err))
	}
	return c.Give(data)
}

// GiveError is GiveJSON for an error. It returns the negated length, for a function that returns an i32.
func (c *Call) GiveError(err *abi.Error) uint64 { return uint64(uint32(-int32(c.GiveJSON(err)))) }

// Take returns the parts that Give stored last, once.
func (c *Call) Take() [][]byte {
	parts := c.pending
	c.pending = nil
	return parts
}

// State returns the call's value for key. At the first use create makes it; it is closed when the call ends.
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

// Private is a value of State that may have given the guest what belongs to the caller, such as rows of a tenant's
// database.
type Private interface{ Private() }

// HasPrivate reports whether a value of State is Private. An instance that got one in its start serves no other call.
func (c *Call) HasPrivate() bool {
	for _, v := range c.state {
		if _, ok := v.(Private); ok {
			return true
		}
	}
	return false
}

// Close ends the call: it closes all values of State.
func (c *Call) Close() error {
	var errs []error
	for _, v := range c.state {
		errs = append(errs, v.Close())
	}
	c.state = nil
	return errors.Join(errs...)
}

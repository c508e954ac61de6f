package extism

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/internal/strictjson"
)

// session is the host's state of one call to a guest.
type session struct {
	adapter *Adapter
	call    *broker.Call
	guest   *sandbox.Guest
	kernel  kernel
	// starting is true during the guest's start; used is true once an export has been called.
	starting, used bool
	// vars are the guest's variables, varBytes their size.
	vars     map[string][]byte
	varBytes int
	// status and headers are those of the last HTTP response.
	status  int
	headers map[string]string
}

// Close implements io.Closer for broker.State.
func (*session) Close() error { return nil }

// session returns the session of a call; ctx is the call's.
func (a *Adapter) session(ctx context.Context, call *broker.Call) *session {
	return broker.State(call, a, func() *session {
		guest := sandbox.GuestOf(ctx)
		s := &session{adapter: a, call: call, guest: guest, vars: map[string][]byte{},
			kernel: kernel{limit: guest.Limits().Memory, limitErr: guest.MemoryLimitError(),
				reserve: guest.Reserve}}
		s.kernel.reset()
		return s
	})
}

// function returns a host function that calls do.
func (a *Adapter) function(name string, params []broker.Type, result *broker.Type,
	do func(context.Context, *session, []uint64) uint64) broker.Function {
	return broker.Function{Name: name, Params: params, Result: result,
		Do: func(ctx context.Context, call *broker.Call, params []uint64) uint64 {
			s := a.session(ctx, call)
			if s.starting {
				s.guest.DisableCopies("its start calls " + name)
			}
			return do(ctx, s, params)
		}}
}

// The signatures of host functions.
var (
	none = []broker.Type{}
	i32  = broker.I32
	i64  = broker.I64
	one  = []broker.Type{i64}
	two  = []broker.Type{i64, i64}
)

// maxArgument bounds the JSON argument of a host function, in bytes: decoding is not interruptible.
const maxArgument = 64 << 10

// decode decodes the JSON in a block. Invalid or too long JSON traps the guest.
func (s *session) decode(function string, offset uint64, v any) {
	data := s.kernel.bytes(function, offset)
	s.call.Charge(int64(min(len(data), maxArgument)) * fuel.TextSteps)
	err := errArgumentTooLong
	if len(data) <= maxArgument {
		err = strictjson.Unmarshal(data, v)
	}
	if err != nil {
		panic(&argumentError{function, err})
	}
}

var errArgumentTooLong = errors.New("it has more than 64 KiB")

// writeJSON writes v as JSON and returns its offset.
func (s *session) writeJSON(v any) uint64 {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // v is never guest data
	}
	return s.write(data)
}

// write is kernel.write with a charge for the copy.
func (s *session) write(data []byte) uint64 {
	s.call.Charge(fuel.CopySteps(uint64(len(data))))
	return s.kernel.write(data)
}

// argumentError is the trap for an invalid JSON argument of a host function.
type argumentError struct {
	function string
	err      error
}

func (e *argumentError) Error() string {
	return e.function + ": its argument is not the JSON expected: " + e.err.Error()
}
func (e *argumentError) Unwrap() error { return e.err }

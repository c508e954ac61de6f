package extism

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictjson"
)

// session is the host's side of one call to a guest.
type session struct {
	adapter *Adapter
	call    *broker.Call
	guest   *sandbox.Guest
	kernel  kernel
	// starting says that the guest's start runs, and used that an export has been called.
	starting, used bool
	// vars are what the guest keeps under names, varBytes their size.
	vars     map[string][]byte
	varBytes int
	// status and headers are those of the last HTTP answer.
	status  int
	headers map[string]string
}

// Close has nothing to close.
func (*session) Close() error { return nil }

// session returns the one of the call, whose context this is.
func (a *Adapter) session(ctx context.Context, call *broker.Call) *session {
	return broker.State(call, a, func() *session {
		guest := sandbox.GuestOf(ctx)
		s := &session{adapter: a, call: call, guest: guest, vars: map[string][]byte{},
			kernel: kernel{limit: guest.Limits().Memory, full: guest.Passed(sandbox.LimitMemory), hold: guest.Hold}}
		s.kernel.reset()
		return s
	})
}

// function makes a host function of do.
func (a *Adapter) function(name string, params []broker.Type, result *broker.Type, do func(context.Context, *session, []uint64) uint64) broker.Function {
	return broker.Function{Name: name, Params: params, Result: result, Do: func(ctx context.Context, call *broker.Call, params []uint64) uint64 {
		s := a.session(ctx, call)
		if s.starting {
			s.guest.Unique("its start calls " + name)
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

// maxArgument bounds the JSON that a host function reads, in bytes: nothing stops the host while it does.
const maxArgument = 64 << 10

// decode reads the JSON in a block. What is no JSON, or too much, traps the guest.
func (s *session) decode(function string, offset uint64, v any) {
	data := s.kernel.bytes(function, offset)
	s.call.Charge(int64(min(len(data), maxArgument)) * broker.TextSteps)
	err := errTooMuch
	if len(data) <= maxArgument {
		err = strictjson.Unmarshal(data, v)
	}
	if err != nil {
		panic(&formError{function, err})
	}
}

var errTooMuch = errors.New("it has more than 64 KiB")

// answer writes v as JSON and returns its offset.
func (s *session) answer(v any) uint64 {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are ours
	}
	return s.write(data)
}

// write is kernel.write for a host function, which is paid for.
func (s *session) write(data []byte) uint64 {
	s.call.Charge(broker.CopySteps(uint64(len(data))))
	return s.kernel.write(data)
}

// formError is the trap of a guest that called a host function with something else than it takes.
type formError struct {
	function string
	err      error
}

func (e *formError) Error() string {
	return e.function + ": its argument is not the JSON expected: " + e.err.Error()
}
func (e *formError) Unwrap() error { return e.err }

package httpbroker

import (
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// maxOpen is how many answers one call may hold open (docs/abi.md).
const maxOpen = 16

// session is what the broker keeps for one guest call.
type session struct {
	call      *broker.Call
	exchanges []*exchange    // all of the call; the handle of one is its index plus one
	replayed  map[string]int // how often each recording was asked for
	scratch   []byte         // for reading on a guest's behalf
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return &session{call: call, replayed: map[string]int{}} })
}

// admit takes e in, unless the call has passed a limit.
func (s *session) admit(e *exchange, perCall int) error {
	if len(s.exchanges) == perCall {
		return failf(abi.CodeLimit, "the call has made %d requests, the most that one call may make", perCall)
	}
	open := 0
	for _, other := range s.exchanges {
		if other.err == nil {
			open++
		}
	}
	if open == maxOpen {
		return failf(abi.CodeLimit, "the call holds %d responses open, the most there may be: read or close them first", maxOpen)
	}
	s.exchanges = append(s.exchanges, e)
	return nil
}

// exchange returns the one that a guest's handle means, or nil.
func (s *session) exchange(handle int32) *exchange {
	if handle < 1 || int(handle) > len(s.exchanges) {
		return nil
	}
	return s.exchanges[handle-1]
}

// Close closes the answers that were left open.
func (s *session) Close() error {
	for _, e := range s.exchanges {
		_ = e.Close()
	}
	return nil
}

package httpbroker

import (
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// maxOpen limits the open responses of one call (docs/abi.md).
const maxOpen = 16

// session is the state of one guest call.
type session struct {
	call      *broker.Call
	exchanges []*exchange    // of the call; the handle is the index plus one
	replayed  map[string]int // the number of replays of each recording
	scratch   []byte         // buffer for a guest's reads
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return &session{call: call, replayed: map[string]int{}} })
}

// register adds e to the call unless a limit of the call is exceeded.
func (s *session) register(e *exchange, perCall int) error {
	if len(s.exchanges) == perCall {
		return failf(abi.CodeLimit, "the call has made %d requests, which is the limit of one call", perCall)
	}
	if s.open() == maxOpen {
		return failf(abi.CodeLimit, "the call has %d open responses, which is the limit: read or close them first",
			maxOpen)
	}
	s.exchanges = append(s.exchanges, e)
	return nil
}

// open counts the requests that are running, or whose responses are neither read nor closed.
func (s *session) open() (n int) {
	for _, e := range s.exchanges {
		if e.pending != nil || e.err == nil {
			n++
		}
	}
	return n
}

// exchange returns the exchange with a guest's handle, or nil.
func (s *session) exchange(handle int32) *exchange {
	if handle < 1 || int(handle) > len(s.exchanges) {
		return nil
	}
	return s.exchanges[handle-1]
}

// Close cancels the running requests, waits for their goroutines, and closes the open responses.
func (s *session) Close() error {
	for _, e := range s.exchanges {
		if e.pending != nil {
			e.cancel()
		}
	}
	for _, e := range s.exchanges {
		e.giveUp()
	}
	return nil
}

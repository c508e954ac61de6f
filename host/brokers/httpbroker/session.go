package httpbroker

import (
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// maxOpen limits the open responses of one call (docs/abi.md).
const maxOpen = 16

// session is the state of one guest call.
type session struct {
	call         *broker.Call
	transactions []*Transaction // of the call; the handle is the index plus one
	replayed     map[string]int // the number of replays of each recording
	scratch      []byte         // buffer for a guest's reads
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return &session{call: call, replayed: map[string]int{}} })
}

// register adds e to the call unless a limit of the call is exceeded.
func (s *session) register(e *Transaction, perCall int) error {
	if len(s.transactions) == perCall {
		return abi.Errorf(abi.CodeLimit, "the call has made %d requests, which is the limit of one call", perCall)
	}
	if s.open() == maxOpen {
		return abi.Errorf(abi.CodeLimit, "the call has %d open responses, which is the limit: read or close them first",
			maxOpen)
	}
	s.transactions = append(s.transactions, e)
	return nil
}

// open counts the requests that are running, or whose responses are neither read nor closed.
func (s *session) open() (n int) {
	for _, e := range s.transactions {
		if e.pending != nil || e.err == nil {
			n++
		}
	}
	return n
}

// transaction returns the transaction with a guest's handle, or nil.
func (s *session) transaction(handle int32) *Transaction {
	if handle < 1 || int(handle) > len(s.transactions) {
		return nil
	}
	return s.transactions[handle-1]
}

// Private implements broker.Private.
func (*session) Private() {}

// Close cancels the running requests, waits for their goroutines, and closes the open responses.
func (s *session) Close() error {
	for _, e := range s.transactions {
		if e.pending != nil {
			e.cancel()
		}
	}
	for _, e := range s.transactions {
		e.Cancel()
	}
	return nil
}

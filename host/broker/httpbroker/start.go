package httpbroker

import "github.com/hako-run/hako/pdk/abi"

// maxPending limits the requests that a call has started and not waited for (docs/abi.md).
const maxPending = 8

// pending is a started request, which a goroutine sends.
type pending struct {
	body     int64         // the size of its body
	done     chan struct{} // closed when the goroutine has ended
	panicked any           // what the goroutine panicked with
}

// mayStart returns an error if the call cannot start another request with a body of that size.
func (s *session) mayStart(b *Broker, body uint64) *abi.Error {
	n, bodies := 0, int64(body)
	for _, e := range s.exchanges {
		if e.pending != nil {
			n, bodies = n+1, bodies+e.pending.body
		}
	}
	switch {
	case n == maxPending:
		return failf(abi.CodeLimit, "the call has %d running requests, which is the limit: wait for one of them first",
			maxPending)
	case n > 0 && bodies > b.limits.RequestBody:
		return failf(abi.CodeLimit,
			"the bodies of the call's running requests exceed %d bytes: wait for one of them first",
			b.limits.RequestBody)
	case len(b.slots) >= cap(b.slots)/2 && s.open() > 0:
		// The other half is reserved for calls without a running request.
		return failf(abi.CodeBusy,
			"the plugin's calls have many running requests: read or close the responses of this "+
				"call, and try again")
	}
	return nil
}

// begin sends the request in a goroutine. While recordings are made or replayed it sends the request synchronously, so
// that the guest determines the order.
func (e *exchange) begin() {
	p := &pending{body: int64(len(e.request.body)), done: make(chan struct{})}
	e.pending = p
	if e.broker.replay != nil || e.broker.record != nil {
		defer close(p.done)
		_ = e.send() // the exchange keeps the error
		return
	}
	go func() {
		defer close(p.done)
		defer func() { p.panicked = recover() }()
		_ = e.send() // the exchange keeps the error
	}()
}

// wait waits for the response to a started request. Then the call's goroutine owns the exchange again.
func (e *exchange) wait() (*Response, error) {
	p := e.pending
	<-p.done
	e.pending = nil
	if p.panicked != nil {
		panic(p.panicked)
	}
	e.chargeRedirects()
	return e.answer, e.err
}

// giveUp closes the exchange. It cancels a running request and waits for its goroutine.
func (e *exchange) giveUp() {
	if p := e.pending; p != nil {
		e.cancel()
		<-p.done
		e.pending = nil
	}
	_ = e.Close()
}

package httpbroker

import (
	"context"
	"io"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/pdk/abi"
)

// maxPending limits the requests that a call has started and not waited for (docs/abi.md).
const maxPending = 8

// pending is the work of a goroutine for a transaction.
type pending struct {
	body     int64         // the size of the request body that it sends
	fetch    bool          // it reads the response body
	n        int           // the bytes that it has read
	err      error         // of reading
	done     chan struct{} // closed when the goroutine has ended
	panicked any           // what the goroutine panicked with
}

// Start sends a request like Do, but does not wait for the response, which Transaction.Wait returns. Its errors are
// those of Do that are known before the request is sent.
func (b *Broker) Start(ctx context.Context, call *broker.Call, head *abi.HTTPRequest, body []byte) (
	*Transaction, error) {
	if failure := b.session(call).mayStart(b, int64(len(body))); failure != nil {
		return nil, failure
	}
	e, err := b.open(ctx, call, head, body)
	if err != nil {
		return nil, err
	}
	e.begin()
	return e, nil
}

// mayStart returns an error if the call cannot start another request with a body of that size.
func (s *session) mayStart(b *Broker, body int64) *abi.Error {
	n, bodies := 0, body
	for _, e := range s.transactions {
		if e.pending != nil && !e.pending.fetch {
			n, bodies = n+1, bodies+e.pending.body
		}
	}
	switch {
	case n == maxPending:
		return abi.Errorf(abi.CodeLimit,
			"the call has %d running requests, which is the limit: wait for one of them first",
			maxPending)
	case n > 0 && bodies > b.limits.RequestBody:
		return abi.Errorf(abi.CodeLimit,
			"the bodies of the call's running requests exceed %d bytes: wait for one of them first",
			b.limits.RequestBody)
	case len(b.slots) >= cap(b.slots)/2 && s.open() > 0:
		// The other half is reserved for calls without a running request.
		return abi.Errorf(abi.CodeBusy,
			"the plugin's calls have many running requests: read or close the responses of this "+
				"call, and try again")
	}
	return nil
}

// begin sends the request in a goroutine. While recordings are made or replayed it sends the request synchronously, so
// that the guest determines the order.
func (t *Transaction) begin() {
	t.pending = &pending{body: int64(len(t.request.body)), done: make(chan struct{})}
	send := func() { _ = t.send() } // the transaction keeps the error
	if t.broker.replay != nil || t.broker.record != nil {
		t.pending.run(send)
		return
	}
	go t.pending.run(send)
}

func (p *pending) run(do func()) {
	defer close(p.done)
	defer func() { p.panicked = recover() }()
	do()
}

// Done returns a channel that is closed when a started request has its response, or a fetch has ended. It is nil if
// nothing is pending.
func (t *Transaction) Done() <-chan struct{} {
	if t.pending == nil {
		return nil
	}
	return t.pending.done
}

// finish waits for the goroutine. Then the call's goroutine owns the transaction again.
func (t *Transaction) finish() *pending {
	p := t.pending
	<-p.done
	t.pending = nil
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p
}

// Wait waits for the response to a started request and returns it, once.
func (t *Transaction) Wait() (*Response, error) {
	t.finish()
	t.chargeRedirects()
	return t.answer, t.err
}

// Fetch reads a part of the response body into buffer in the background. Nothing else of the response may be used until
// Fetched has returned.
func (t *Transaction) Fetch(buffer []byte) {
	p := &pending{fetch: true, done: make(chan struct{})}
	t.pending = p
	go p.run(func() { p.n, p.err = io.ReadAtLeast(t, buffer, 1) })
}

// Fetched waits for the end of a fetch and returns the number of bytes read, with io.EOF at the end of the body.
func (t *Transaction) Fetched() (int, error) {
	p := t.finish()
	t.call.Charge(int64(p.n) * fuel.TextSteps)
	return p.n, p.err
}

// Cancel ends the transaction: it cancels what is pending and closes the response. It may be called twice.
func (t *Transaction) Cancel() {
	if p := t.pending; p != nil {
		t.cancel()
		<-p.done
		t.pending = nil
	}
	_ = t.Close()
}

package httpbroker

import (
	"context"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Do sends a request on behalf of call, like a guest's request, and returns the final response. The caller closes its
// body. Bodies that are open at the end of call are closed then.
//
// Every error contains an *abi.Error: CodeInvalid for a malformed request, CodeNotGranted when no rule allows the URL,
// a redirect's target or the address behind it, CodeLimit, CodeCredential when the rule's credential cannot be used,
// CodeTimeout (errors.Is also finds context.DeadlineExceeded), CodeCanceled (context.Canceled) and CodeNetwork. ctx
// limits the reading of the body too. Do is safe for concurrent use with different calls. It sets call.Replayed if the
// response came from a recording.
func (b *Broker) Do(ctx context.Context, call *broker.Call, head *abi.HTTPRequest, body []byte) (*Response, error) {
	e, err := b.open(ctx, call, head, body)
	if err != nil {
		return nil, err
	}
	err = e.send()
	e.chargeRedirects()
	if err != nil {
		return nil, err
	}
	return e.answer, nil
}

// Transaction is one request of a guest, from its start until the response body is read or closed. It implements that
// body. Like its call it belongs to one goroutine at a time.
type Transaction struct {
	broker  *Broker
	call    *broker.Call
	session *session
	start   time.Time

	outer   context.Context // of the call, for its trace
	span    *trace.Span
	ctx     context.Context // of the request
	cancel  context.CancelFunc
	release func()
	request *request // the last hop
	answer  *Response
	body    io.ReadCloser
	bytes   int64
	once    sync.Once
	err     error // set at its end

	// pending is set from begin to Wait, and from Fetch to Fetched. Only the call's goroutine accesses it. Meanwhile
	// another goroutine sends the request, or reads the body, and owns the other fields.
	pending   *pending
	redirects int64 // followed and not charged yet
}

// open checks and charges a request and registers it with its call. Only the call's goroutine may call it.
func (b *Broker) open(ctx context.Context, call *broker.Call, head *abi.HTTPRequest,
	body []byte) (*Transaction, error) {
	call.Charge(broker.RequestSteps + int64(len(b.rules))*broker.EntrySteps)
	e := &Transaction{broker: b, call: call, session: b.session(call), start: time.Now()}
	e.outer, e.span = trace.Start(ctx, "http", trace.Client)
	if err := e.prepare(head, body); err != nil {
		e.end(err)
		return nil, err
	}
	return e, nil
}

func (e *Transaction) prepare(head *abi.HTTPRequest, body []byte) (err error) {
	b := e.broker
	if e.request, err = b.newRequest(head, body); err != nil {
		return err
	}
	e.request.tenant, e.request.placeholders = e.call.Tenant, e.call.Placeholders()
	if err := e.session.register(e, b.limits.PerCall); err != nil {
		return err
	}
	if err := b.acquire(); err != nil {
		return err
	}
	e.ctx, e.cancel = context.WithTimeoutCause(e.outer, e.request.time, errRequestTime)
	e.release = func() { e.cancel(); <-b.slots }
	return nil
}

// send sets the response, or ends the transaction with the error. Any goroutine may call it.
func (e *Transaction) send() error {
	var err error
	if e.answer, err = e.follow(); err != nil {
		err = explain(e.ctx, e.request, err)
		e.end(err)
		return err
	}
	e.body, e.answer.Body = e.answer.Body, e
	e.answer.URL = e.request.mask.text(e.request.target.String())
	if c := e.request.credential; c != nil {
		e.answer.Credential = c.Public
		if status := e.answer.Status; (status == http.StatusUnauthorized ||
			status == http.StatusForbidden) && c.Renewal != nil {
			e.answer.Credential = maps.Clone(c.Renewal)
			maps.Copy(e.answer.Credential, c.Public)
		}
	}
	return nil
}

// chargeRedirects charges the call for the redirects that were followed.
func (e *Transaction) chargeRedirects() {
	if n := e.redirects; n > 0 {
		e.redirects = 0
		e.call.Charge(n * broker.RequestSteps)
	}
}

// acquire acquires a slot for a request.
func (b *Broker) acquire() error {
	select {
	case b.slots <- struct{}{}:
		return nil
	default:
		return abi.Errorf(abi.CodeLimit, "the plugin has %d running requests, which is the limit: read or close their "+
			"bodies first", cap(b.slots))
	}
}

// follow sends the request and follows redirects. It checks each hop against the rules.
func (e *Transaction) follow() (*Response, error) {
	for range maxRedirects + 1 {
		r := e.request
		var err error
		if r.rule, err = e.broker.findRule(e.call.Plugin, r.method, &r.target); err != nil {
			return nil, err
		}
		if err := e.broker.authorize(e.ctx, e.call, r); err != nil {
			return nil, err
		}
		resp, err := e.broker.answer(e.ctx, e.session, r)
		if err != nil {
			return nil, err
		}
		next, err := e.broker.redirect(r, resp)
		if next == nil && err == nil {
			return resp, nil
		}
		resp.discard()
		if err != nil {
			return nil, err
		}
		e.request = next
		e.redirects++
	}
	return nil, &caused{abi.Errorf(abi.CodeLimit, "%s %s: more than %d redirects", e.request.method,
		e.request.target.shown(), maxRedirects), ErrManyRedirects}
}

// answer returns the response to one hop from a recording, the cache or the network.
func (b *Broker) answer(ctx context.Context, s *session, r *request) (*Response, error) {
	switch {
	case b.replay != nil:
		return s.replay(b.replay, b.replayNote, r)
	case b.record != nil:
		return b.sendRecorded(ctx, r)
	case b.cache != nil:
		return b.sendCached(ctx, r)
	}
	return b.sendRenewing(ctx, r)
}

// send sends r once.
func (b *Broker) send(ctx context.Context, r *request) (*Response, error) {
	if err := r.rule.wait(ctx); err != nil {
		return nil, err
	}
	*r.tries++
	if b.proxied {
		if err := r.rule.dialer.CheckProxied(ctx, r.target.host); err != nil {
			return nil, err
		}
	}
	h, err := r.rule.transport.RoundTrip(r.http(ctx))
	if err != nil {
		return nil, err
	}
	resp, err := newResponse(r, h, &b.limits)
	if err != nil {
		return nil, err
	}
	if r.target.scheme == "http" { // the proxy itself may answer
		if resp, err = r.masked(resp, b.proxyMask); err != nil {
			return nil, err
		}
	}
	return r.masked(resp, r.mask)
}

// Read reads the response body. An error ends the transaction and is returned again by later reads.
func (e *Transaction) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.body.Read(p)
	e.bytes += int64(n)
	switch {
	case err == io.EOF:
		e.end(io.EOF)
	case err != nil:
		e.end(explain(e.ctx, e.request, err))
	}
	return n, e.err
}

// Close ends the transaction. It may be called twice.
func (e *Transaction) Close() error {
	e.end(errClosed)
	return nil
}

// errClosed is the error of Read after Close.
var errClosed = abi.Errorf(abi.CodeInvalid, "the response is closed")

// end releases the resources of the transaction and reports it, once. Later reads return err.
func (e *Transaction) end(err error) {
	e.once.Do(func() {
		e.err = err
		if e.body != nil {
			_ = e.body.Close()
			e.body = nil
		}
		if e.release != nil {
			e.release()
		}
		e.report()
	})
}

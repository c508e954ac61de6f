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

func (t *Transaction) prepare(head *abi.HTTPRequest, body []byte) (err error) {
	b := t.broker
	if t.request, err = b.newRequest(head, body); err != nil {
		return err
	}
	t.request.tenant, t.request.placeholders = t.call.Tenant, t.call.Placeholders()
	if err := t.session.register(t, b.limits.PerCall); err != nil {
		return err
	}
	if err := b.acquire(); err != nil {
		return err
	}
	t.ctx, t.cancel = context.WithTimeoutCause(t.outer, t.request.time, errRequestTime)
	t.release = func() { t.cancel(); <-b.slots }
	return nil
}

// send sets the response, or ends the transaction with the error. Any goroutine may call it.
func (t *Transaction) send() error {
	var err error
	if t.answer, err = t.follow(); err != nil {
		err = explain(t.ctx, t.request, err)
		t.end(err)
		return err
	}
	t.body, t.answer.Body = t.answer.Body, t
	t.answer.URL = t.request.mask.text(t.request.target.String())
	if c := t.request.credential; c != nil {
		t.answer.Credential = c.Public
		if status := t.answer.Status; (status == http.StatusUnauthorized ||
			status == http.StatusForbidden) && c.Renewal != nil {
			t.answer.Credential = maps.Clone(c.Renewal)
			maps.Copy(t.answer.Credential, c.Public)
		}
	}
	return nil
}

// chargeRedirects charges the call for the redirects that were followed.
func (t *Transaction) chargeRedirects() {
	if n := t.redirects; n > 0 {
		t.redirects = 0
		t.call.Charge(n * broker.RequestSteps)
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
func (t *Transaction) follow() (*Response, error) {
	for range maxRedirects + 1 {
		r := t.request
		var err error
		if r.rule, err = t.broker.findRule(t.call.Plugin, r.method, &r.target); err != nil {
			return nil, err
		}
		if err := t.broker.authorize(t.ctx, t.call, r); err != nil {
			return nil, err
		}
		resp, err := t.broker.answer(t.ctx, t.session, r)
		if err != nil {
			return nil, err
		}
		next, err := t.broker.redirect(r, resp)
		if next == nil && err == nil {
			return resp, nil
		}
		resp.discard()
		if err != nil {
			return nil, err
		}
		t.request = next
		t.redirects++
	}
	return nil, &caused{abi.Errorf(abi.CodeLimit, "%s %s: more than %d redirects", t.request.method,
		t.request.target.shown(), maxRedirects), ErrManyRedirects}
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
func (t *Transaction) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.body.Read(p)
	t.bytes += int64(n)
	switch {
	case err == io.EOF:
		t.end(io.EOF)
	case err != nil:
		t.end(explain(t.ctx, t.request, err))
	}
	return n, t.err
}

// Close ends the transaction. It may be called twice.
func (t *Transaction) Close() error {
	t.end(errClosed)
	return nil
}

// errClosed is the error of Read after Close.
var errClosed = abi.Errorf(abi.CodeInvalid, "the response is closed")

// end releases the resources of the transaction and reports it, once. Later reads return err.
func (t *Transaction) end(err error) {
	t.once.Do(func() {
		t.err = err
		if t.body != nil {
			_ = t.body.Close()
			t.body = nil
		}
		if t.release != nil {
			t.release()
		}
		t.report()
	})
}

package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// Pending calls: in protocol versions without sessions, a question during a call is the result of the client's request,
// and the call is pending. A second request, with the answer, continues the same call, which passes policy, quotas and
// audit log once. The requestState names the call and the replica that holds it, to which other replicas
// forward the request (forward.go). Only the caller can continue the call.

const (
	// pendingPrefix begins the requestState of a pending call. The replica follows where there are several, and a
	// hyphen.
	pendingPrefix = "call_"
	// maxPendingCalls limits the calls that wait for answers, maxPendingPerCaller those of one caller.
	maxPendingCalls, maxPendingPerCaller = 256, 16
	// resultKept is the time for which a result is kept for a client that has not fetched it yet.
	resultKept = time.Minute
)

var (
	errNoCall = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "requestState names no pending call of yours: it belongs to another call, " +
			"or the call has ended, or its replica has stopped, and then it is unknown whether the call had an effect"}
	errDisplaced = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "a later request with the same requestState continues this call"}
	errTooManyPending = errors.New("too many calls wait for answers")
)

// pendingCalls are the calls that wait for answers.
type pendingCalls struct {
	mu sync.Mutex
	// byKey finds them by the keys that replicas have for their IDs.
	byKey map[string]*pendingCall
	// work counts running calls, and requests of other replicas that continue them.
	work sync.WaitGroup
}

// pendingCall is one call that can ask.
type pendingCall struct {
	id, key, caller, binding string
	cancel                   context.CancelFunc
	// one is held by the current question.
	one chan struct{}

	// done is closed when there is a result.
	done     chan struct{}
	response *abi.Response
	err      error
	// ended is set when the call has ended. pendingCalls.mu guards it.
	ended bool

	mu sync.Mutex // guards what follows
	// question waits for its answer; it may be nil. asked counts the questions.
	question  *question
	asked     int
	attendant *attendant
}

// attendant is a request that waits for a call.
type attendant struct {
	report func(abi.Progress)
	// wake signals a question. displaced is closed when another attendant has taken its place.
	wake, displaced chan struct{}
}

// question asks the person at the client of a call.
type question struct {
	key    string
	params *mcp.ElicitParams
	answer chan *mcp.ElicitResult
}

// elicit asks the person at the client, as (*mcp.ServerSession).Elicit does in protocol versions with sessions.
func (p *pendingCall) elicit(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	select {
	case p.one <- struct{}{}:
		defer func() { <-p.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	q := &question{params: params, answer: make(chan *mcp.ElicitResult, 1)}
	p.mu.Lock()
	p.asked++
	q.key = "question" + strconv.Itoa(p.asked)
	p.question = q
	if p.attendant != nil {
		select {
		case p.attendant.wake <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	defer p.settle(q, nil)
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, errTooManyPending
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// settle ends a waiting question, with an answer or without.
func (p *pendingCall) settle(q *question, answer *mcp.ElicitResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.question == q {
		p.question = nil
		q.answer <- answer
	}
}

// waiting returns the waiting question, or nil.
func (p *pendingCall) waiting() *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.question
}

// progress passes a report to the attendant, if its client requested progress.
func (p *pendingCall) progress(report abi.Progress) {
	p.mu.Lock()
	a := p.attendant
	p.mu.Unlock()
	if a != nil && a.report != nil {
		a.report(report)
	}
}

// attend makes a request the attendant of the call, in place of an earlier one: its client may have sent it again
// because the connection was lost.
func (p *pendingCall) attend(report func(abi.Progress)) *attendant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attendant != nil {
		close(p.attendant.displaced)
	}
	p.attendant = &attendant{report, make(chan struct{}, 1), make(chan struct{})}
	return p.attendant
}

// leave ends the attendance, and reports whether no other attendant had taken its place.
func (p *pendingCall) leave(a *attendant) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attendant != a {
		return false
	}
	p.attendant = nil
	return true
}

// next waits for a question, or for the result, when it returns nil. A client that leaves cancels the call.
func (p *pendingCall) next(ctx context.Context, a *attendant) (*question, error) {
	for {
		if q := p.waiting(); q != nil {
			return q, nil
		}
		select {
		case <-p.done:
			return nil, nil
		case <-a.wake:
		case <-a.displaced:
			return nil, errDisplaced
		case <-ctx.Done():
			if !p.leave(a) {
				return nil, errDisplaced
			}
			p.cancel()
			<-p.done
			return nil, ctx.Err()
		}
	}
}

// startPending starts a call that can ask. run makes it.
func (s *Server) startPending(ctx context.Context, caller string, call *pipeline.Call,
	run func(ctx context.Context, p *pendingCall) (*abi.Response, error)) *pendingCall {
	p := &pendingCall{
		id: pendingPrefix + rand.Text(), caller: caller, binding: bindingOf(call),
		one: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if replica := s.replicas.own(); replica != "" {
		p.id = pendingPrefix + replica + "-" + rand.Text()
	}
	p.key = sessionstore.Key(p.id)
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.base, p.cancel)
	s.pending.work.Go(func() {
		defer stop()
		defer s.pending.ended(p)
		defer close(p.done)
		p.response, p.err = run(ctx, p)
		if p.err != nil {
			p.cancel() // a response is charged until converse has delivered it, or until it is garbage
		}
	})
	return p
}

// replicaOf returns the replica with the pending call that a requestState names, or empty.
func replicaOf(state string) string {
	name, ok := strings.CutPrefix(state, pendingPrefix)
	replica, _, tagged := strings.Cut(name, "-")
	if !ok || !tagged {
		return ""
	}
	return replica
}

// store stores a call for the request with the answer. It reports false if there is no room.
func (l *pendingCalls) store(p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[p.key] != nil {
		return true
	}
	own := 0
	for _, other := range l.byKey {
		if other.caller == p.caller {
			own++
		}
	}
	if len(l.byKey) >= maxPendingCalls || own >= maxPendingPerCaller {
		return false
	}
	if l.byKey == nil {
		l.byKey = map[string]*pendingCall{}
	}
	l.byKey[p.key] = p
	l.expire(p)
	return true
}

// ended keeps the result of a call whose client may still fetch it.
func (l *pendingCalls) ended(p *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.ended = true
	l.expire(p)
}

// expire schedules the removal of a call that has ended, if it is kept. The caller holds mu.
func (l *pendingCalls) expire(p *pendingCall) {
	if p.ended && l.byKey[p.key] != nil {
		key := p.key // the result itself may be gone long before
		time.AfterFunc(resultKept, func() { l.remove(key) })
	}
}

func (l *pendingCalls) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}

// of returns the call with this key, or nil.
func (l *pendingCalls) of(key string) *pendingCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// find returns the call that a request continues, or nil if caller, tool or arguments differ.
func (l *pendingCalls) find(id, caller string, call *pipeline.Call) *pendingCall {
	if p := l.of(sessionstore.Key(id)); p != nil && p.caller == caller && p.binding == bindingOf(call) {
		return p
	}
	return nil
}

// callerKey identifies a caller, as far as the frontend knows it.
func callerKey(c pipeline.Caller, x *exchange) string {
	owner := ""
	if x != nil {
		owner = x.owner()
	}
	return identity.Key(c.Frontend, owner, c.Token, c.Toolset)
}

// bindingOf returns a digest of the called tool and its arguments.
func bindingOf(call *pipeline.Call) string {
	r := call.Request
	arguments := jsontext.Value(r.Arguments).Clone()
	// What has no such form is compared as it is. Integers are compared as they were written: as floats, some would be
	// equal that are not. Clients may write 1 as 1.0 the second time.
	_ = arguments.Canonicalize(jsontext.CanonicalizeRawInts(false))
	hash := sha256.New()
	// Strings always encode. A JSON array keeps them apart.
	_ = json.NewEncoder(hash).Encode([]string{r.Method, r.Name, r.URI, string(arguments)})
	return hex.EncodeToString(hash.Sum(nil))
}

// converse makes a call that can ask, or continues the call that the request names, until there is a result or a
// question. For a question it returns state and requests.
func (s *Server) converse(ctx context.Context, call *pipeline.Call, r *request,
	run func(ctx context.Context, p *pendingCall) (*abi.Response, error)) (
	_ *abi.Response, state string, requests mcp.InputRequestMap, _ error) {
	caller := callerKey(call.Caller, r.x)
	var p *pendingCall
	if !r.before.continuesCall() {
		p = s.startPending(ctx, caller, call, run)
	} else if p = s.pending.find(r.before.state, caller, call); p == nil {
		return nil, "", nil, errNoCall
	}
	a := p.attend(call.Progress)
	defer p.leave(a)
	if q := p.waiting(); q != nil {
		if answer, ok := r.before.answers[q.key].(*mcp.ElicitResult); ok {
			p.settle(q, answer)
		}
	}
	for {
		q, err := p.next(ctx, a)
		switch {
		case errors.Is(err, errDisplaced):
			return nil, "", nil, err
		case q == nil:
			s.pending.remove(p.key)
			if err == nil {
				context.AfterFunc(ctx, p.cancel)
				return p.response, "", nil, p.err
			}
			return nil, "", nil, err
		case s.pending.store(p):
			return nil, p.id, mcp.InputRequestMap{q.key: q.params}, nil
		}
		p.settle(q, nil)
	}
}

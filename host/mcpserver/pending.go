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

	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/mcpserver/sessionstore"
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
	// over is set when the call has ended. pendingCalls.mu guards it.
	over bool

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
func (t *pendingCall) elicit(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	select {
	case t.one <- struct{}{}:
		defer func() { <-t.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	q := &question{params: params, answer: make(chan *mcp.ElicitResult, 1)}
	t.mu.Lock()
	t.asked++
	q.key = "question" + strconv.Itoa(t.asked)
	t.question = q
	if t.attendant != nil {
		select {
		case t.attendant.wake <- struct{}{}:
		default:
		}
	}
	t.mu.Unlock()
	defer t.settle(q, nil)
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
func (t *pendingCall) settle(q *question, answer *mcp.ElicitResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.question == q {
		t.question = nil
		q.answer <- answer
	}
}

// waiting returns the waiting question, or nil.
func (t *pendingCall) waiting() *question {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.question
}

// progress passes a report to the attendant, if its client requested progress.
func (t *pendingCall) progress(p abi.Progress) {
	t.mu.Lock()
	a := t.attendant
	t.mu.Unlock()
	if a != nil && a.report != nil {
		a.report(p)
	}
}

// attend makes a request the attendant of the call, in place of an earlier one: its client may have sent it again
// because the connection was lost.
func (t *pendingCall) attend(report func(abi.Progress)) *attendant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attendant != nil {
		close(t.attendant.displaced)
	}
	t.attendant = &attendant{report, make(chan struct{}, 1), make(chan struct{})}
	return t.attendant
}

// leave ends the attendance, and reports whether no other attendant had taken its place.
func (t *pendingCall) leave(a *attendant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attendant != a {
		return false
	}
	t.attendant = nil
	return true
}

// next waits for a question, or for the result, when it returns nil. A client that leaves cancels the call.
func (t *pendingCall) next(ctx context.Context, a *attendant) (*question, error) {
	for {
		if q := t.waiting(); q != nil {
			return q, nil
		}
		select {
		case <-t.done:
			return nil, nil
		case <-a.wake:
		case <-a.displaced:
			return nil, errDisplaced
		case <-ctx.Done():
			if !t.leave(a) {
				return nil, errDisplaced
			}
			t.cancel()
			<-t.done
			return nil, ctx.Err()
		}
	}
}

// startPending starts a call that can ask. run makes it.
func (s *Server) startPending(ctx context.Context, caller string, call *pipeline.Call,
	run func(ctx context.Context, t *pendingCall) (*abi.Response, error)) *pendingCall {
	t := &pendingCall{
		id: pendingPrefix + rand.Text(), caller: caller, binding: bindingOf(call),
		one: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if replica := s.replicas.store.Replica(); replica != "" {
		t.id = pendingPrefix + replica + "-" + rand.Text()
	}
	t.key = sessionstore.Key(t.id)
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.base, t.cancel)
	s.pending.work.Go(func() {
		defer stop()
		defer s.pending.ended(t)
		defer close(t.done)
		t.response, t.err = run(ctx, t)
		if t.err != nil {
			t.cancel() // a response is charged until converse has delivered it, or until it is garbage
		}
	})
	return t
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
func (l *pendingCalls) store(t *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[t.key] != nil {
		return true
	}
	own := 0
	for _, other := range l.byKey {
		if other.caller == t.caller {
			own++
		}
	}
	if len(l.byKey) >= maxPendingCalls || own >= maxPendingPerCaller {
		return false
	}
	if l.byKey == nil {
		l.byKey = map[string]*pendingCall{}
	}
	l.byKey[t.key] = t
	l.expire(t)
	return true
}

// ended keeps the result of a call whose client may still fetch it.
func (l *pendingCalls) ended(t *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.over = true
	l.expire(t)
}

// expire schedules the removal of a call that has ended, if it is kept. The caller holds mu.
func (l *pendingCalls) expire(t *pendingCall) {
	if t.over && l.byKey[t.key] != nil {
		key := t.key // the result itself may be gone long before
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
	if t := l.of(sessionstore.Key(id)); t != nil && t.caller == caller && t.binding == bindingOf(call) {
		return t
	}
	return nil
}

// callerKey identifies a caller, as far as the frontend knows it.
func callerKey(c pipeline.Caller, over *exchange) string {
	owner := ""
	if over != nil {
		owner = over.owner()
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
	run func(ctx context.Context, t *pendingCall) (*abi.Response, error)) (
	_ *abi.Response, state string, requests mcp.InputRequestMap, _ error) {
	caller := callerKey(call.Caller, r.over)
	var t *pendingCall
	if !r.before.continuesCall() {
		t = s.startPending(ctx, caller, call, run)
	} else if t = s.pending.find(r.before.state, caller, call); t == nil {
		return nil, "", nil, errNoCall
	}
	a := t.attend(call.Progress)
	defer t.leave(a)
	if q := t.waiting(); q != nil {
		if answer, ok := r.before.answers[q.key].(*mcp.ElicitResult); ok {
			t.settle(q, answer)
		}
	}
	for {
		q, err := t.next(ctx, a)
		switch {
		case errors.Is(err, errDisplaced):
			return nil, "", nil, err
		case q == nil:
			s.pending.remove(t.key)
			if err == nil {
				context.AfterFunc(ctx, t.cancel)
				return t.response, "", nil, t.err
			}
			return nil, "", nil, err
		case s.pending.store(t):
			return nil, t.id, mcp.InputRequestMap{q.key: q.params}, nil
		}
		t.settle(q, nil)
	}
}

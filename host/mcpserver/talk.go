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

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// This file is how a call of the era without sessions asks while it runs. The question is the result of the client's request, and the call
// waits: its second request, with the answer, is the same call, which passes policy, quotas and audit log once. What requestState names lies
// with the host, and only whoever made the call can go on with it.

const (
	// talkPrefix begins the requestState of a call that waits.
	talkPrefix = "call_"
	// maxTalks is how many calls may wait for answers, maxTalksPerCaller how many of one caller.
	maxTalks, maxTalksPerCaller = 256, 16
	// talkKept is how long the result of a call is kept for whoever did not come back in time.
	talkKept = time.Minute
)

var (
	errNoTalk = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState names no call of yours that waits for an answer here: it has ended, is another one, or waits at another replica. Make the call again"}
	errTalks  = errors.New("too many calls wait for answers")
)

// talks are the calls that wait for answers.
type talks struct {
	mu   sync.Mutex
	byID map[string]*talk
	// work are the calls that run.
	work sync.WaitGroup
}

// talk is one call that can ask.
type talk struct {
	id, caller, binding string
	cancel              context.CancelFunc
	// one is held by the question that is put; wake tells who attends to look at it.
	one, wake chan struct{}

	// done is closed when there is a result.
	done     chan struct{}
	response *abi.Response
	err      error

	mu sync.Mutex // guards what follows
	// question waits for its answer; nil is none. asked counts them.
	question *question
	asked    int
	attended bool
	report   func(abi.Progress)
}

// question is what a call wants to know from the person at its client.
type question struct {
	key    string
	params *mcp.ElicitParams
	answer chan *mcp.ElicitResult
}

// elicit asks the person at the client, as (*mcp.ServerSession).Elicit does in the era with sessions.
func (t *talk) elicit(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	defer t.settle(q, nil)
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, errTalks
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// settle ends a question if it waits, with an answer or without.
func (t *talk) settle(q *question, answer *mcp.ElicitResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.question == q {
		t.question = nil
		q.answer <- answer
	}
}

// waiting is the question that waits, or nil.
func (t *talk) waiting() *question {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.question
}

// progress passes a report on to the request that attends, if it wants any.
func (t *talk) progress(p abi.Progress) {
	t.mu.Lock()
	report := t.report
	t.mu.Unlock()
	if report != nil {
		report(p)
	}
}

// attend begins a request that waits for the call, and reports false if there is one already.
func (t *talk) attend(report func(abi.Progress)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attended {
		return false
	}
	t.attended, t.report = true, report
	return true
}

func (t *talk) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attended, t.report = false, nil
}

// next waits for a question, or the result: then it is nil. A client that leaves cancels the call.
func (t *talk) next(ctx context.Context) (*question, error) {
	for {
		if q := t.waiting(); q != nil {
			return q, nil
		}
		select {
		case <-t.done:
			return nil, nil
		case <-t.wake:
		case <-ctx.Done():
			t.cancel()
			<-t.done
			return nil, ctx.Err()
		}
	}
}

// talk starts a call that can ask. run makes it.
func (s *Server) talk(ctx context.Context, call *pipeline.Call, run func(ctx context.Context, t *talk) (*abi.Response, error)) *talk {
	t := &talk{
		id: talkPrefix + rand.Text(), caller: callerKey(call.Caller), binding: bindingOf(call),
		one: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.base, t.cancel)
	s.talks.work.Go(func() {
		defer stop()
		defer t.cancel()
		defer close(t.done)
		t.response, t.err = run(ctx, t)
		time.AfterFunc(talkKept, func() { s.talks.remove(t) })
	})
	return t
}

// park keeps a call for the request that brings the answer, and reports false if there is no room.
func (l *talks) park(t *talk) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[t.id] != nil {
		return true
	}
	own := 0
	for _, other := range l.byID {
		if other.caller == t.caller {
			own++
		}
	}
	if len(l.byID) >= maxTalks || own >= maxTalksPerCaller {
		return false
	}
	if l.byID == nil {
		l.byID = map[string]*talk{}
	}
	l.byID[t.id] = t
	return true
}

func (l *talks) remove(t *talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, t.id)
}

// find returns the call that a request goes on with, or nil if it is not this caller's very call.
func (l *talks) find(id string, call *pipeline.Call) *talk {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.byID[id]; t != nil && t.caller == callerKey(call.Caller) && t.binding == bindingOf(call) {
		return t
	}
	return nil
}

// callerKey tells callers apart, as far as the door knows them.
func callerKey(c pipeline.Caller) string {
	return strings.Join([]string{c.Door, c.Tenant, c.User, c.Token}, "\x00")
}

// bindingOf is a digest of what is called.
func bindingOf(call *pipeline.Call) string {
	r := call.Request
	arguments := jsontext.Value(r.Arguments).Clone()
	_ = arguments.Canonicalize() // what has no such form is compared as it is
	hash := sha256.New()
	// Strings always encode. A JSON array keeps them apart.
	_ = json.NewEncoder(hash).Encode([]string{r.Method, r.Name, r.URI, string(arguments)})
	return hex.EncodeToString(hash.Sum(nil))
}

// converse makes a call that can ask, or goes on with the one that the request names, until there is a result or a question: then state and
// requests are there.
func (s *Server) converse(ctx context.Context, call *pipeline.Call, before round, run func(ctx context.Context, t *talk) (*abi.Response, error)) (
	_ *abi.Response, state string, requests mcp.InputRequestMap, _ error) {
	var t *talk
	if strings.HasPrefix(before.state, talkPrefix) {
		t = s.talks.find(before.state, call)
	} else {
		t = s.talk(ctx, call, run)
	}
	if t == nil || !t.attend(call.Progress) {
		return nil, "", nil, errNoTalk
	}
	defer t.leave()
	if q := t.waiting(); q != nil {
		if answer, ok := before.answers[q.key].(*mcp.ElicitResult); ok {
			t.settle(q, answer)
		}
	}
	for {
		q, err := t.next(ctx)
		switch {
		case q == nil:
			s.talks.remove(t)
			if err == nil {
				return t.response, "", nil, t.err
			}
			return nil, "", nil, err
		case s.talks.park(t):
			return nil, t.id, mcp.InputRequestMap{q.key: q.params}, nil
		}
		t.settle(q, nil)
	}
}

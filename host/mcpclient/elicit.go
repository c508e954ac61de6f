package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/internal/callclock"
	"github.com/hako-run/hako/pdk/abi"
)

// This file is how questions that a server asks in the middle of a call find the one who made it. From 2026-07-28 on
// they are the result of the call, which is made again with the answers. Before, they are requests of the server's,
// which do not say what they are about: over HTTP they come on the stream of the call; on standard input and output,
// all calls that are under way must be the same caller's.

const (
	// sessionless is the first version without requests of the server's.
	sessionless = "2026-07-28"
	// maxRounds is how often a call is made again with answers.
	maxRounds = 10
	// linger is how long a call that was given up still counts as under way: the server may not have heard of that.
	linger = time.Minute
	// callMark is where a request of the server's carries the token of the call on whose stream it came. No server sees
	// it.
	callMark = "hako.run/call"
)

var (
	errOutside = errors.New("no call is under way that this question could be about")
	errWhose   = errors.New("calls of several callers are under way, and the server does not say for which of them it asks: set its limits.concurrency to 1, or use a version of MCP from 2026-07-28 on")
)

// ongoing is a call that is under way in a session.
type ongoing struct {
	invocation *catalog.Invocation
	clock      *callclock.Clock
	// ctx ends with the call. token is that of its stream, number its place among the calls of the session.
	ctx    context.Context
	token  string
	number int64
	// asking are the questions that are put. It grows under the session's mu alone.
	asking sync.WaitGroup

	mu sync.Mutex
	// unanswered are the reasons why questions got no answer of a person.
	unanswered []string
}

// past is a call that was given up.
type past struct {
	invocation *catalog.Invocation
	until      time.Time
}

// sameCaller reports whether two calls are certainly of one caller.
func sameCaller(a, b *catalog.Invocation) bool {
	return a.Tenant == b.Tenant && a.Session == b.Session && a.Session != ""
}

// begin notes a call. end is called when it is over; given up says that the server has not answered it.
func (x *session) begin(ctx context.Context, inv *catalog.Invocation, c *callclock.Clock, token string) (o *ongoing,
	end func(givenUp bool)) {
	ctx, cancel := context.WithCancel(ctx)
	o = &ongoing{invocation: inv, clock: c, ctx: ctx, token: token, number: x.tokens.Add(1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls[o] = true
	return o, func(givenUp bool) {
		x.mu.Lock()
		delete(x.calls, o)
		now := time.Now()
		x.past = slices.DeleteFunc(x.past, func(p past) bool { return p.until.Before(now) })
		if givenUp {
			x.past = append(x.past, past{inv, now.Add(linger)})
		}
		x.mu.Unlock()
		cancel()
		o.asking.Wait()
	}
}

// about returns the call that a request of the server's is about, with one more question that is put. token is that of
// the stream on which it came, empty if that is no call's.
func (x *session) about(token string) (*ongoing, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found *ongoing
	for o := range x.calls {
		switch {
		case token != "" && o.token != token:
			continue
		case found != nil && !sameCaller(found.invocation, o.invocation):
			return nil, errWhose
		case found == nil || o.number > found.number:
			found = o
		}
	}
	if found == nil {
		return nil, errOutside
	}
	for _, p := range x.past {
		if token == "" && time.Now().Before(p.until) && !sameCaller(p.invocation, found.invocation) {
			return nil, errWhose
		}
	}
	found.asking.Add(1)
	return found, nil
}

// requested answers a server's request elicitation/create.
func (s *server) requested(ctx context.Context, x *session, p *mcp.ElicitParams) (mcp.Result, error) {
	if p == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params are missing"}
	}
	token, _ := p.Meta[callMark].(string)
	o, err := x.about(token)
	if err != nil {
		if s.lines.Allow() { // a server may ask as often as it likes
			s.logger.Warn("a question of an upstream server was put to nobody", "err", err)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	defer o.asking.Done()
	if x.sdk.InitializeResult().ProtocolVersion >= sessionless {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "from 2026-07-28 on a server asks with the result of the call"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	answer, err := s.question(ctx, o, p)
	if broken, ok := errors.AsType[*elicitation.RuleError](err); ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: broken.Rule}
	}
	return answer, nil
}

// question puts a question to the caller. The result is good for the server also where there is an error.
func (s *server) question(ctx context.Context, o *ongoing, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if o.invocation.Elicit == nil {
		o.note(elicitation.ErrNobody)
		return &mcp.ElicitResult{Action: elicitation.Decline}, elicitation.ErrNobody
	}
	schema, err := json.Marshal(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	if p.RequestedSchema == nil {
		schema = nil
	}
	defer o.clock.Pause()()
	answer, err := o.invocation.Elicit(ctx, &elicitation.Request{Mode: p.Mode, Message: p.Message, Schema: schema,
		URL: p.URL, ID: p.ElicitationID})
	if err != nil && ctx.Err() == nil {
		if s.lines.Allow() {
			s.logger.Info("a question of an upstream server was not answered", "err", err)
		}
		o.note(err)
	}
	return &mcp.ElicitResult{Action: answer.Action, Content: answer.Content}, err
}

// note keeps why a question got no answer.
func (o *ongoing) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := err.Error(); !slices.Contains(o.unanswered, text) {
		o.unanswered = append(o.unanswered, text)
	}
}

// tell adds to a tool's result why questions of the server got no answer: the model can then say so, instead of trying
// again.
func (o *ongoing) tell(server string, response *abi.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	format := "Note: the server %s asked something in the middle of this call, and got no answer: %s."
	if strings.HasPrefix(o.invocation.Request.Locale, "ja") {
		format = "注意: サーバー %s がこの呼び出しの途中で質問しましたが、回答できませんでした（%s）。"
	}
	for _, reason := range o.unanswered {
		response.Content = append(response.Content,
			abi.Content{Type: abi.Text, Text: fmt.Sprintf(format, server, reason)})
	}
}

// round is one of a call's: what the server wants to know, and its state.
type round struct {
	requests mcp.InputRequestMap
	state    string
	needs    bool
}

var errOther = errors.New("it asks for something in the middle of the call that is not passed on: sampling or roots")

// rounds makes a call, and again with the answers to what the server asks, until there is a result. call makes it with
// the answers and the state of the round before.
func (s *server) rounds(ctx context.Context, o *ongoing, call func(answers mcp.InputResponseMap, state string) (round,
	error)) error {
	var answers mcp.InputResponseMap
	state := ""
	for range maxRounds {
		r, err := call(answers, state)
		if err != nil || !r.needs {
			return err
		}
		if s.spec.Elicitation == ElicitationDecline {
			return &answerError{errors.New("it asks for input in the middle of the call, which the operator declines (elicitation: decline)")}
		}
		answers, state = mcp.InputResponseMap{}, r.state
		for _, key := range slices.Sorted(maps.Keys(r.requests)) {
			p, ok := r.requests[key].(*mcp.ElicitParams)
			if !ok {
				return &answerError{errOther}
			}
			answer, err := s.question(ctx, o, p)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if answer == nil {
				return err
			}
			answers[key] = answer
		}
	}
	return &answerError{fmt.Errorf("it has asked for input %d times and given no result", maxRounds)}
}

// without is metadata of a call by somebody who cannot be asked: the server shall know before it begins.
func (s *server) without(meta mcp.Meta, x *session, inv *catalog.Invocation) mcp.Meta {
	if inv.CanElicit || s.spec.Elicitation == ElicitationDecline ||
		x.sdk.InitializeResult().ProtocolVersion < sessionless {
		return meta
	}
	if meta == nil {
		meta = mcp.Meta{}
	}
	meta[mcp.MetaKeyClientCapabilities] = struct{}{}
	return meta
}

// marked is a message of a server's with the token of the call on whose stream it came, if it is a question.
func marked(message []byte, token string) []byte {
	var request, params, meta map[string]json.RawMessage
	if json.Unmarshal(message, &request) != nil || string(request["method"]) != `"elicitation/create"` ||
		json.Unmarshal(request["params"], &params) != nil || params == nil {
		return message
	}
	_ = json.Unmarshal(params["_meta"], &meta) // none, or one that nobody needs
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	put := func(into map[string]json.RawMessage, key string, value any) {
		if err == nil {
			into[key], err = json.Marshal(value)
		}
	}
	put(meta, callMark, token)
	put(params, "_meta", meta)
	put(request, "params", params)
	if changed, bad := json.Marshal(request); err == nil && bad == nil {
		return changed
	}
	return message
}

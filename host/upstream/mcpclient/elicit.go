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
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/pdk/abi"
)

// Elicitation: the questions that a server asks in the middle of a call are put to the caller. From 2026-07-28 on they
// are a result of the call, which is repeated with the answers. In earlier versions they are requests of the server,
// which do not name the call. Over HTTP they arrive on the stream of the call. Over standard input and output, all
// running calls must be of one caller.

const (
	// sessionless is the first protocol version without requests from servers.
	sessionless = "2026-07-28"
	// maxRounds bounds the number of times that a call is repeated with answers.
	maxRounds = 10
	// linger is the time for which a canceled call counts as running: the server may not know of the cancellation yet.
	linger = time.Minute
	// callMark is the key in a server's request for the token of the call on whose stream it arrived. Servers never see
	// it.
	callMark = "hako.run/call"
)

var (
	errOutside = errors.New("no running call can be the cause of this question")
	errWhose   = errors.New("calls of several callers are running, and the server does not say which of them it " +
		"asks: set its limits.concurrency to 1, or use a version of MCP from 2026-07-28 on")
)

// ongoing is a running call in a session.
type ongoing struct {
	invocation *catalog.Invocation
	clock      *callclock.Clock
	// ctx ends with the call. token is that of its stream, number its position among the calls of the session.
	ctx    context.Context
	token  string
	number int64
	// asking counts the open questions. It grows only under the session's mu.
	asking sync.WaitGroup

	mu sync.Mutex
	// unanswered are the reasons why questions have no answer of a person.
	unanswered []string
}

// past is the caller of a canceled call. It does not hold the call, whose arguments may be large.
type past struct {
	caller caller
	until  time.Time
}

// caller identifies the caller of a call.
type caller struct{ tenant, session string }

func callerOf(inv *catalog.Invocation) caller { return caller{inv.Tenant, inv.Session} }

// isSame reports whether two callers are certainly one.
func (c caller) isSame(other caller) bool { return c == other && c.session != "" }

// begin registers a call. The caller calls end when the call is over; givenUp reports whether the server has not
// answered it.
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
			x.past = append(x.past, past{caller{strings.Clone(inv.Tenant), strings.Clone(inv.Session)}, now.Add(linger)})
		}
		x.mu.Unlock()
		cancel()
		o.asking.Wait()
	}
}

// about returns the call that a server's request belongs to, with its count of questions increased. token is that of
// the stream on which the request arrived, or empty.
func (x *session) about(token string) (*ongoing, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found *ongoing
	for o := range x.calls {
		switch {
		case token != "" && o.token != token:
			continue
		case found != nil && !callerOf(found.invocation).isSame(callerOf(o.invocation)):
			return nil, errWhose
		case found == nil || o.number > found.number:
			found = o
		}
	}
	if found == nil {
		return nil, errOutside
	}
	for _, p := range x.past {
		if token == "" && time.Now().Before(p.until) && !p.caller.isSame(callerOf(found.invocation)) {
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
		if s.lines.Allow() { // servers may ask without limit
			s.logger.Warn("asking a question of an upstream server failed", "err", err)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	defer o.asking.Done()
	if x.sdk.InitializeResult().ProtocolVersion >= sessionless {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "since protocol version 2026-07-28 a server asks in the result of a call"}
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

// question puts a question to the caller. The result can be sent to the server even if there is an error.
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

// note records why a question has no answer.
func (o *ongoing) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := err.Error(); !slices.Contains(o.unanswered, text) {
		o.unanswered = append(o.unanswered, text)
	}
}

// explainUnanswered adds to a tool's result why questions of the server were not answered, so that the model can say so
// instead of trying again.
func (o *ongoing) explainUnanswered(server string, response *abi.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	format := "Note: the server %s asked something in the middle of this call, and got no answer: %s."
	if lang.Japanese(o.invocation.Request.Locale) {
		format = "注意: サーバー %s がこの呼び出しの途中で質問しましたが、回答できませんでした（%s）。"
	}
	for _, reason := range o.unanswered {
		response.Content = append(response.Content,
			abi.Content{Type: abi.Text, Text: fmt.Sprintf(format, server, reason)})
	}
}

// round is the result of one round of a call: the server's questions and its state.
type round struct {
	requests mcp.InputRequestMap
	state    string
	needs    bool
	// result returns the response of a round in which the server needs no input.
	result func() (*abi.Response, error)
}

var errOther = errors.New("it asks for sampling or roots in the middle of the call, which hako does not forward")

// rounds makes a call and repeats it with the answers to the server's questions until there is a result. call makes it
// with the answers and the state of the previous round.
func (s *server) rounds(ctx context.Context, o *ongoing,
	call func(answers mcp.InputResponseMap, state string) (round, error)) (*abi.Response, error) {
	var answers mcp.InputResponseMap
	state := ""
	for range maxRounds {
		r, err := call(answers, state)
		if err != nil {
			return nil, err
		}
		if !r.needs {
			return invalid(r.result())
		}
		if s.spec.Elicitation == ElicitationDecline {
			return nil, &answerError{errors.New(
				"it asks for input in the middle of the call, which the operator declines (elicitation: decline)")}
		}
		answers, state = mcp.InputResponseMap{}, r.state
		for _, key := range slices.Sorted(maps.Keys(r.requests)) {
			p, ok := r.requests[key].(*mcp.ElicitParams)
			if !ok {
				return nil, &answerError{errOther}
			}
			answer, err := s.question(ctx, o, p)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if answer == nil {
				return nil, err
			}
			answers[key] = answer
		}
	}
	return nil, &answerError{fmt.Errorf("it has asked for input %d times without a result", maxRounds)}
}

// without removes the elicitation capability from the metadata of a call whose caller cannot be asked, so that the
// server knows before it begins.
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

// marked returns a server's message. If it is a question, it carries the token of the call on whose stream it arrived.
func marked(message []byte, token string) []byte {
	var request, params, meta map[string]json.RawMessage
	if json.Unmarshal(message, &request) != nil || string(request["method"]) != `"elicitation/create"` ||
		json.Unmarshal(request["params"], &params) != nil || params == nil {
		return message
	}
	_ = json.Unmarshal(params["_meta"], &meta) // metadata that cannot be read does not matter
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

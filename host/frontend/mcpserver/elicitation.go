package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/pdk/abi"
)

// Elicitation: the person at a client is asked with a form, before a call by hako or during it by a server. Up to
// 2025-11-25 the form is a request to the client while the call waits. From 2026-07-28 on it is the result of the call,
// and a second request brings the answer (multi round-trip requests). The requestState is the ID of a question about a
// call that has not begun, or of a pending call (pending.go). The host keeps everything else, so there is nothing to
// forge.

// governor is an optional ability of a Pipeline: it decides before a call what callers may do.
type governor interface {
	// Visible reports whether the caller may ever call the tool, or ask to.
	Visible(caller pipeline.Caller, tool *catalog.Tool) bool
	// Described returns the tool as it is to be described to the caller: itself, or a copy with another description.
	Described(caller pipeline.Caller, tool *catalog.Tool) *catalog.Tool
	// MayAsk reports whether a call of the tool by the caller may put a question to people.
	MayAsk(caller pipeline.Caller, tool *catalog.Tool) bool
}

// inputApproval is the key of the question among the inputs that a result requests.
const inputApproval = "approval"

// round continues an earlier request that asked for input.
type round struct {
	state   string
	answers mcp.InputResponseMap
}

// withdrawTime is the time that the SDK has to notify a client that a form is no longer needed: it does so on the
// call's own stream, but beside the call, whose answer ends the stream.
const withdrawTime = 20 * time.Millisecond

// asker asks the person at a client. It returns when ctx ends.
type asker func(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error)

// inSession asks on the stream of the call.
func inSession(session *mcp.ServerSession) asker {
	return func(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		answer, err := session.Elicit(ctx, params)
		if ctx.Err() != nil {
			time.Sleep(withdrawTime)
		}
		return answer, err
	}
}

// askInSession asks on the stream of a call that the SDK has not seen.
func (s *Server) askInSession(session *session) asker {
	return func(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		_, sdk, err := s.connection(ctx, session)
		if err != nil {
			return nil, err
		}
		return inSession(sdk)(ctx, params)
	}
}

// prompterFor returns the Prompter for a client with these capabilities, in this language.
func prompterFor(able *mcp.ClientCapabilities, ask asker, language string) (prompter approval.Prompter) {
	if !canAsk(able) {
		return prompter
	}
	if fillsForms(able) {
		prompter.Ask = func(ctx context.Context, q *approval.Question) (bool, error) {
			answer, err := ask(ctx, formFor(q, language))
			return err == nil && agrees(answer), err
		}
	}
	prompter.Fill = func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
		if q.Form != nil && !fillsForms(able) || q.Form == nil && able.Elicitation.URL == nil {
			return elicitation.Answer{}, errMode
		}
		answer, err := ask(ctx, questionFor(q, language))
		switch {
		case errors.Is(err, errTooManyPending):
			return elicitation.Answer{}, err
		case err != nil: // the SDK's error may repeat the answer
			return elicitation.Answer{}, elicitation.ErrMisfit
		}
		return elicitation.Answer{Action: answer.Action, Content: answer.Content}, nil
	}
	return prompter
}

var errMode = errors.New("the client does not support elicitation of this mode")

// questionFor returns a server's question for the client: in the name of the server, with the validated form.
func questionFor(q *elicitation.Question, language string) *mcp.ElicitParams {
	params := &mcp.ElicitParams{Mode: q.Mode(), Message: q.Text(language)}
	if q.Form != nil {
		params.RequestedSchema = q.Form.Schema()
	} else {
		params.URL, params.ElicitationID = q.URL.String(), "elc_"+rand.Text() // the server's own may not be unique
	}
	return params
}

// request has the parts of a client's request that determine how its call may ask.
type request struct {
	able        *mcp.ClientCapabilities
	sessionless bool
	ask         asker
	// x is nil on stdio.
	x      *exchange
	before round
}

func requestOf[P mcp.Params](req *mcp.ServerRequest[P], before round) *request {
	return &request{req.ClientCapabilities(), req.ProtocolVersion() >= transport.Sessionless, inSession(req.Session),
		exchangeOf(req.Extra), before}
}

// answer makes the call of a request with run. It returns a response, or state and requests if the call needs input.
// The context of run ends with ctx, which has to end once the client has the answer: its memory is charged until then.
func (s *Server) answer(ctx context.Context, r *request, call *pipeline.Call,
	run func(context.Context, *pipeline.Call) (*abi.Response, error)) (
	response *abi.Response, state string, requests mcp.InputRequestMap, err error) {
	delivery := ctx
	ctx, release := s.bound(ctx, r.x)
	defer func() {
		answered := response // without a reference it is no longer charged (sandbox), also while its encoding is written
		context.AfterFunc(delivery, func() {
			release()
			runtime.KeepAlive(answered)
		})
	}()
	language := s.language(call)
	switch {
	case !r.sessionless:
		call.Prompter = prompterFor(r.able, r.ask, language)
		response, err = run(ctx, call)
	case !r.before.known():
		return nil, "", nil, errForeignState
	case !canAsk(r.able) && !r.before.continuesCall():
		response, err = run(ctx, call)
	default:
		response, state, requests, err = s.converse(ctx, call, r,
			func(ctx context.Context, p *pendingCall) (*abi.Response,
				error) {
				asking := *call
				asking.Prompter = prompterFor(r.able, p.elicit, language)
				asking.Prompter.Later, asking.Prompter.Reply = asking.Prompter.Ask != nil, r.before.reply()
				if call.Progress != nil {
					asking.Progress = p.progress
				}
				return run(ctx, &asking)
			})
	}
	if pending, asked, ok := s.input(call, err); ok {
		return nil, pending, asked, nil
	}
	return response, state, requests, err
}

// errForeignState refuses a requestState that was changed or belongs to another server. The request may be the second
// half of a call, so it does not become a call of its own.
var errForeignState = &jsonrpc.Error{
	Code:    jsonrpc.CodeInvalidParams,
	Message: "requestState was not issued by hako: return it unchanged, or start again with a request without it",
}

// known reports whether the requestState has the form of hako's, or is empty.
func (b round) known() bool {
	return b.state == "" || b.continuesCall() || strings.HasPrefix(b.state, approval.IDPrefix)
}

// continuesCall reports whether the request continues a pending call (pending.go).
func (b round) continuesCall() bool { return strings.HasPrefix(b.state, pendingPrefix) }

// reply is the answer to the question of the earlier round, or nil.
func (b round) reply() *approval.Reply {
	answer, ok := b.answers[inputApproval].(*mcp.ElicitResult)
	if !ok {
		return nil
	}
	return &approval.Reply{ID: b.state, Yes: agrees(answer)}
}

// canAsk reports whether a client can ask its user anything: to fill in a form, to visit a page, or both.
func canAsk(c *mcp.ClientCapabilities) bool { return c != nil && c.Elicitation != nil }

// fillsForms reports whether a client shows forms to its user. A client that declares no modes does (MCP 2025-11-25,
// elicitation, capabilities).
func fillsForms(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// agrees reports whether a form came back with a yes. Declining, canceling and an empty box are a no.
func agrees(answer *mcp.ElicitResult) bool {
	yes, _ := answer.Content["approve"].(bool)
	return answer.Action == "accept" && yes
}

var (
	formEnglish  = json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Allow this call"}},"required":["approve"]}`)
	formJapanese = json.RawMessage(
		`{"type":"object","properties":{"approve":{"type":"boolean","title":"この呼び出しを許可する"}},"required":["approve"]}`)
)

// formFor returns the question as a form.
func formFor(q *approval.Question, language string) *mcp.ElicitParams {
	schema := formEnglish
	if lang.Japanese(language) {
		schema = formJapanese
	}
	return &mcp.ElicitParams{Mode: "form", Message: q.Text(language), RequestedSchema: schema}
}

// language returns the caller's language.
func (s *Server) language(call *pipeline.Call) string {
	return cmp.Or(call.Caller.Locale, s.now().Language)
}

// input returns the result of a call that waits for an answer: a state, and the form that asks for it. ok is false for
// every other error.
func (s *Server) input(call *pipeline.Call, err error) (state string, requests mcp.InputRequestMap, ok bool) {
	pending, ok := errors.AsType[*approval.PendingError](err)
	if !ok {
		return "", nil, false
	}
	q := pending.Question
	return q.ID, mcp.InputRequestMap{inputApproval: formFor(q, s.language(call))}, true
}

// mayAsk reports whether a call of the tool may put a question to the person at a client.
func (s *Server) mayAsk(caller pipeline.Caller, name string, by *mcp.ClientCapabilities) bool {
	if s.governor == nil || !canAsk(by) {
		return false
	}
	tool, ok := s.view(caller).Tool(name)
	return ok && (fillsForms(by) || tool.Source.Asks) && s.governor.MayAsk(caller, tool)
}

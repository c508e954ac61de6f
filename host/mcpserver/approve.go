package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/pipeline"
)

// This file is how the person at a client is asked about a call: with a form (MCP, elicitation). Up to 2025-11-25 the server sends it while
// the call waits. From 2026-07-28 on it is the result of the call, whose state is the question's ID, and a second call brings the answer
// (multi round-trip requests). The ID is all that a client gets to keep: what it stands for lies with the host, so there is nothing to forge.

// governor is what a Caller may also be: it knows beforehand what callers may do.
type governor interface {
	// Visible reports whether the caller may ever call the tool, or ask to.
	Visible(caller pipeline.Caller, tool *catalog.Tool) bool
	// MayAsk reports whether a call of the tool by the caller may put a question to people.
	MayAsk(caller pipeline.Caller, tool *catalog.Tool) bool
}

// inputApproval is the key of the question among what a result asks for.
const inputApproval = "approval"

// round is what a request has of an earlier one that asked for input.
type round struct {
	state   string
	answers mcp.InputResponseMap
}

// takeBack is the time that the SDK has to tell a client that a form is no longer needed: it does so on the call's own stream, but beside
// the call, whose answer ends the stream.
const takeBack = 20 * time.Millisecond

// wayTo is how the person at the client that sent the request can be asked about it. language is the one to ask in.
func wayTo[P mcp.Params](req *mcp.ServerRequest[P], before round, language string) approval.Way {
	able := fillsForms(req.ClientCapabilities())
	switch {
	case req.ProtocolVersion() >= sessionless:
		return approval.Way{Later: able, Reply: before.reply()}
	case able:
		return approval.Way{Ask: func(ctx context.Context, q *approval.Question) (bool, error) {
			answer, err := req.Session.Elicit(ctx, formFor(q, language))
			if ctx.Err() != nil {
				time.Sleep(takeBack)
			}
			return err == nil && agrees(answer), err
		}}
	}
	return approval.Way{}
}

// reply is the answer to the question of the earlier round, or nil.
func (b round) reply() *approval.Reply {
	answer, ok := b.answers[inputApproval].(*mcp.ElicitResult)
	if !ok {
		return nil
	}
	return &approval.Reply{ID: b.state, Yes: agrees(answer)}
}

// fillsForms reports whether a client shows forms to its user. One that says nothing of modes does (MCP 2025-11-25, elicitation,
// capabilities).
func fillsForms(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// agrees reports whether a form came back with a yes. Everything else is a no: to decline, to cancel, and to leave the box empty.
func agrees(answer *mcp.ElicitResult) bool {
	yes, _ := answer.Content["approve"].(bool)
	return answer.Action == "accept" && yes
}

var (
	formEnglish  = json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Allow this call"}},"required":["approve"]}`)
	formJapanese = json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"この呼び出しを許可する"}},"required":["approve"]}`)
)

// formFor is the question as a form.
func formFor(q *approval.Question, language string) *mcp.ElicitParams {
	schema := formEnglish
	if strings.HasPrefix(strings.ToLower(language), "ja") {
		schema = formJapanese
	}
	return &mcp.ElicitParams{Mode: "form", Message: q.Text(language), RequestedSchema: schema}
}

// language is the one that the caller reads.
func (s *Server) language(call *pipeline.Call) string {
	return cmp.Or(call.Caller.Locale, s.options.Language)
}

// input is what a call that waits for an answer results in: a state, and the form that asks for it. ok is false for every other error.
func (s *Server) input(call *pipeline.Call, err error) (state string, requests mcp.InputRequestMap, ok bool) {
	pending, ok := errors.AsType[*approval.PendingError](err)
	if !ok {
		return "", nil, false
	}
	q := pending.Question
	return q.ID, mcp.InputRequestMap{inputApproval: formFor(q, s.language(call))}, true
}

// mayAsk reports whether a call of the tool may put a question to people.
func (s *Server) mayAsk(caller pipeline.Caller, name string) bool {
	governor, ok := s.calls.(governor)
	if !ok {
		return false
	}
	tool, ok := s.catalog.View().Tool(name)
	return ok && governor.MayAsk(caller, tool)
}

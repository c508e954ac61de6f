package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/host/quota"
	"github.com/hako-run/hako/host/trace"
)

// Approvals asks people. *approval.Desk does.
type Approvals interface {
	Ask(ctx context.Context, q *approval.Question, way approval.Way) (by string, err error)
}

// Quotas limits what callers use. *quota.Limiter does.
type Quotas interface {
	Enter(c quota.Call) (leave func(steps int64), err error)
}

// subject is what a call is for, as the policy sees it.
type subject struct {
	source *catalog.Source
	// name is the tool's at the doors; for what is no tool, MCP's method.
	name        string
	title       manifest.Text
	annotations manifest.Annotations
	limits      manifest.Limits
	// input is a tool's input schema.
	input json.RawMessage
}

func ofTool(tool *catalog.Tool) *subject {
	return &subject{tool.Source, tool.Name, tool.Spec.Title, tool.Hints(), tool.Spec.Limits, tool.Spec.InputSchema}
}

// readOnly are the annotations of what is no tool: resources, prompts and completions change nothing and stay inside.
var readOnly = manifest.Annotations{ReadOnlyHint: &yes, OpenWorldHint: &no}

var yes, no = true, false

func ofMethod(source *catalog.Source, method string) *subject {
	return &subject{source: source, name: method, annotations: readOnly}
}

// Visible reports whether the caller may ever call the tool, or ask to. Doors list no others.
func (p *Pipeline) Visible(caller Caller, tool *catalog.Tool) bool {
	if p.options.Policy == nil {
		return true
	}
	return p.options.Policy().Visible(policyCall(caller, ofTool(tool), nil))
}

// MayAsk reports whether a call of the tool by the caller may put a question to people, whatever its arguments: the policy's, or the tool's
// own. A door that reaches its callers in one of several ways takes that one then.
func (p *Pipeline) MayAsk(caller Caller, tool *catalog.Tool) bool {
	if tool.Source.Asks || p.options.Policy == nil {
		return tool.Source.Asks
	}
	return p.options.Policy().MayAsk(policyCall(caller, ofTool(tool), nil))
}

func policyCall(caller Caller, s *subject, arguments json.RawMessage) *policy.Call {
	return &policy.Call{
		Tool: s.name, Plugin: s.source.Name, Annotations: s.annotations, Arguments: arguments,
		Door: caller.Door, Tenant: caller.Tenant, User: caller.User, Token: caller.Token, Groups: caller.Groups,
	}
}

// permit lets a call go on if the policy allows it, or a person does.
func (p *Pipeline) permit(ctx context.Context, call *Call, s *subject, arguments json.RawMessage, record *Record) error {
	if p.options.Policy == nil {
		return nil
	}
	decision := p.decide(ctx, policyCall(call.Caller, s, arguments))
	record.Action, record.Rule = decision.Action, decision.Rule
	switch decision.Action {
	case policy.Allow:
		return nil
	case policy.Ask:
		q := p.question(call, s, arguments)
		q.Rule, q.Reason = decision.Rule, decision.Reason.In(p.locale(call))
		q.Approvers, q.Remember = decision.Approvers, decision.Remember
		defer p.reportWaiting(call)()
		return p.ask(ctx, call, q, call.Way, record)
	}
	return &NotAllowedError{Name: s.name, Rule: decision.Rule, Reason: because(decision.Rule, decision.Reason.In(p.locale(call)))}
}

// decide asks the policy.
func (p *Pipeline) decide(ctx context.Context, c *policy.Call) policy.Decision {
	_, span := trace.Start(ctx, "policy", trace.Internal)
	defer span.End()
	decision := p.options.Policy().Decide(c)
	span.Text(trace.Action, string(decision.Action))
	span.Text(trace.Rule, decision.Rule)
	return decision
}

// because is why a rule stands against a call.
func because(rule, reason string) string {
	if rule == policy.RuleDefault {
		return "no rule of the policy allows it"
	}
	if reason == "" {
		return fmt.Sprintf("the policy's rule %q denies it", rule)
	}
	return fmt.Sprintf("the policy's rule %q denies it: %s", rule, reason)
}

// question is what people are asked about the call, without the rule that wants it.
func (p *Pipeline) question(call *Call, s *subject, arguments json.RawMessage) *approval.Question {
	a := s.annotations
	reads := a.ReadOnlyHint != nil && *a.ReadOnlyHint
	return &approval.Question{
		Caller: approval.Caller{Door: call.Caller.Door, Tenant: call.Caller.Tenant, User: call.Caller.User, Session: call.Caller.Session},
		Tool:   s.name, Plugin: s.source.Name, Title: s.title.In(p.locale(call)), Arguments: arguments,
		Destructive: !reads && (a.DestructiveHint == nil || *a.DestructiveHint),
		OpenWorld:   a.OpenWorldHint == nil || *a.OpenWorldHint,
	}
}

// ask puts a question to people.
func (p *Pipeline) ask(ctx context.Context, call *Call, q *approval.Question, way approval.Way, record *Record) error {
	ctx, span := trace.Start(ctx, "approval", trace.Internal)
	defer span.End()
	p.hide(q)
	way.By = approval.Person{Tenant: call.Caller.Tenant, User: call.Caller.User, Groups: call.Caller.Groups, Operator: call.Caller.Operator}
	err := error(approval.ErrUnreachable)
	if p.options.Approvals != nil {
		record.Approver, err = p.options.Approvals.Ask(ctx, q, way)
	}
	var refused *approval.RefusedError
	if errors.As(err, &refused) {
		record.Approver = refused.By
	}
	record.Question = q.ID
	var pending *approval.PendingError
	answer := Answer{Outcome: approval.OutcomeOf(q, err)}
	if !q.Asked.IsZero() && !errors.As(err, &pending) {
		answer.Waited = time.Since(q.Asked)
	}
	record.Answers = append(record.Answers, answer)
	span.Text(trace.Question, q.ID)
	span.Text(trace.Rule, q.Rule)
	span.Text(trace.Outcome, answer.Outcome)
	switch {
	case err == nil, errors.As(err, &pending), ctx.Err() != nil:
		return err
	}
	answered := err.Error()
	if errors.Is(err, approval.ErrUnreachable) {
		answered += ": call it through a client that can ask (MCP elicitation), or have somebody answer with hako approvals"
	}
	return &NotAllowedError{
		Name: q.Tool, Rule: q.Rule, Reason: fmt.Sprintf("the policy's rule %q wants a person to agree, and %s", q.Rule, answered), answered: answered,
	}
}

// asker lets a broker put questions about what the call is doing. The answer cannot come with a second call: by then this one is over.
func (p *Pipeline) asker(call *Call, s *subject, arguments json.RawMessage, record *Record) func(context.Context, broker.Question) error {
	return func(ctx context.Context, about broker.Question) error {
		q := p.question(call, s, arguments)
		q.Detail, q.Rule, q.Reason = about.Text, about.Rule, about.Reason
		way := call.Way
		way.Later, way.Reply = false, nil
		err := p.ask(ctx, call, q, way, record)
		var refused *NotAllowedError
		if errors.As(err, &refused) {
			return errors.New(refused.answered) // the broker says what was asked, and by which rule
		}
		return err
	}
}

// enter counts the call against the quotas.
func (p *Pipeline) enter(call *Call, s *subject, record *Record) (leave func(steps int64), err error) {
	if p.options.Quotas == nil {
		return func(int64) {}, nil
	}
	leave, err = p.options.Quotas.Enter(quota.Call{
		Tenant: call.Caller.Tenant, User: call.Caller.User, Token: call.Caller.Token, Plugin: s.source.Name, Tool: s.name,
	})
	var used *quota.Error
	if errors.As(err, &used) {
		record.Quota = used.Rule
	}
	return leave, err
}

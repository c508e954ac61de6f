package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/callclock"
)

// Approvals asks people to approve calls. *approval.Queue implements it.
type Approvals interface {
	Ask(ctx context.Context, q *approval.Question, prompter approval.Prompter) (by string, err error)
}

var _ Approvals = (*approval.Queue)(nil)

// Quotas limits the use by callers. *quota.Limiter implements it.
type Quotas interface {
	Acquire(c quota.Call) (release func(steps int64), err error)
}

// subject is the target of a call, as the policy sees it.
type subject struct {
	source *catalog.Source
	// name is the tool's name in the catalog, or the MCP method of other requests; offered is the caller's name for it.
	name        string
	offered     string
	title       manifest.Text
	description manifest.Text
	annotations manifest.Annotations
	limits      manifest.Limits
	// input is a tool's input schema, replaces describes what it overwrites.
	input    json.RawMessage
	replaces *manifest.Replaces
}

func toolSubject(shown *catalog.Tool) *subject {
	tool := shown.Real()
	return &subject{tool.Source, tool.Name, shown.Name, tool.Spec.Title, tool.Spec.Description, tool.Hints(),
		tool.Spec.Limits, tool.Spec.InputSchema, tool.Spec.Replaces}
}

// readOnly are the annotations of resources, prompts and completions: they change nothing and do not reach other
// systems.
var readOnly = manifest.Annotations{ReadOnlyHint: &yes, OpenWorldHint: &no}

var yes, no = true, false

func methodSubject(source *catalog.Source, method string) *subject {
	return &subject{source: source, name: method, offered: method, annotations: readOnly}
}

// Visible reports whether the caller may ever call the tool or ask to. Frontends list only visible tools.
func (p *Pipeline) Visible(caller Caller, tool *catalog.Tool) bool {
	return p.visible(caller, "", tool)
}

// visible is Visible for a caller, or for a plugin that calls tools for the caller if via is not empty.
func (p *Pipeline) visible(caller Caller, via string, tool *catalog.Tool) bool {
	return p.options.Policy == nil || tool.Source.Own ||
		p.options.Policy().Visible(p.policyCall(caller, via, toolSubject(tool), nil))
}

// MayAsk reports whether a call of the tool by the caller may ask people something, whatever its arguments: for the
// policy or for the tool. Frontends then choose a way of responding that allows questions.
func (p *Pipeline) MayAsk(caller Caller, tool *catalog.Tool) bool {
	if tool.Source.Asks || tool.Source.Own || p.options.Policy == nil {
		return tool.Source.Asks
	}
	return p.options.Policy().MayAsk(p.policyCall(caller, "", toolSubject(tool), nil))
}

// policyCall is the call of a subject as the policy sees it. via is the plugin whose tool makes it, if one does.
func (p *Pipeline) policyCall(caller Caller, via string, s *subject, arguments json.RawMessage) *policy.Call {
	return &policy.Call{
		Via: via, Tool: s.name, Plugin: s.source.Name, Annotations: s.annotations, Arguments: arguments,
		Frontend: caller.Frontend, Tenant: caller.Tenant, User: caller.User, Token: caller.Token, Groups: caller.Groups,
		Scopes: caller.Scopes, Email: caller.Email, Toolset: p.toolsetName(&caller),
	}
}

// permit returns nil if the policy or a person permits the call.
func (p *Pipeline) permit(ctx context.Context, c *served) error {
	if p.options.Policy == nil || c.subject.source.Own {
		return nil
	}
	decision := p.decidePolicy(ctx, p.policyCall(c.Caller, c.via(), c.subject, c.request.Arguments), c.record)
	switch decision.Action {
	case policy.Allow:
		return nil
	case policy.Ask:
		q := p.question(c)
		q.Rule, q.Reason = decision.Rule, decision.Reason
		q.Approvers, q.Remember = decision.Approvers, decision.Remember
		prompter := c.Prompter
		prompter.Compare = p.comparer(c)
		defer p.startWaitingReports(c.Call)()
		if err := p.ask(ctx, c, q, prompter); err != nil {
			return err
		}
		return p.checkUnchanged(ctx, q, prompter)
	}
	return &NotAllowedError{Name: c.subject.offered, Rule: decision.Rule, MissingScopes: decision.MissingScopes,
		Reason: denialReason(&decision, p.locale(c.Call))}
}

func (p *Pipeline) decidePolicy(ctx context.Context, c *policy.Call, record *openRecord) policy.Decision {
	_, span := trace.Start(ctx, "policy", trace.Internal)
	defer span.End()
	now := p.options.Policy()
	decision := now.Decide(c)
	record.Action, record.Rule, record.Policy = decision.Action, decision.Rule, now.ID()
	span.Text(trace.Action, string(decision.Action))
	span.Text(trace.Rule, decision.Rule)
	return decision
}

// denialReason explains why a decision denies a call.
func denialReason(d *policy.Decision, locale string) string {
	if d.Rule == policy.RuleDefault {
		return "no rule of the policy allows it"
	}
	text := fmt.Sprintf("the policy's rule %q denies it", d.Rule)
	if len(d.MissingScopes) > 0 {
		text += " to tokens without the scope " + strings.Join(d.MissingScopes, " ")
	}
	if reason := d.Reason.In(locale); reason != "" {
		text += ": " + reason
	}
	return text
}

// question returns the approval question for a call, without the rule.
func (p *Pipeline) question(c *served) *approval.Question {
	s := c.subject
	a := s.annotations
	reads := a.ReadOnlyHint != nil && *a.ReadOnlyHint
	client := ""
	if f := c.Caller.Frontend; f == FrontendHTTP || f == FrontendStdio { // others have no client of their own
		client = strings.TrimSpace(c.Caller.Client + " " + c.Caller.ClientVersion)
	}
	via := ""
	if c.parent != nil {
		via = c.parent.served.subject.name
	}
	return &approval.Question{
		Caller: approval.Caller{Frontend: c.Caller.Frontend, Tenant: c.Caller.Tenant, User: c.Caller.User,
			Session: c.Caller.Session},
		Client: client, Via: via,
		Tool: s.name, Plugin: s.source.Name, Title: s.title, About: firstSentences(s.description),
		Arguments:   c.request.Arguments,
		Destructive: !reads && (a.DestructiveHint == nil || *a.DestructiveHint),
		OpenWorld:   a.OpenWorldHint == nil || *a.OpenWorldHint,
	}
}

// maxAbout bounds a sentence about a tool, in characters.
const maxAbout = 200

// firstSentences returns the first sentence of a text in each language, bounded.
func firstSentences(text manifest.Text) manifest.Text {
	first := manifest.FirstSentence(text)
	for language, sentence := range first {
		if runes := []rune(sentence); len(runes) > maxAbout {
			first[language] = string(runes[:maxAbout]) + "…"
		}
	}
	return first
}

// ask asks people to approve a call.
func (p *Pipeline) ask(ctx context.Context, c *served, q *approval.Question, prompter approval.Prompter) error {
	record := c.record
	ctx, span := trace.Start(ctx, "approval", trace.Internal)
	defer span.End()
	key := q.Binding()
	p.hideSecrets(q)
	prompter.By = approval.Person{Tenant: c.Caller.Tenant, User: c.Caller.User, Groups: c.Caller.Groups,
		Operator: c.Caller.Operator}
	err := error(approval.ErrUnreachable)
	if p.options.Approvals != nil && !c.unattended {
		defer callclock.Pause(ctx)()
		prompter.Waiting = func(id string) { record.running.change(func(s *RunningState) { s.Question = id }) }
		defer record.running.change(func(s *RunningState) { s.Question = "" })
		record.Approver, err = record.questions.askOnce(ctx, p.options.Approvals, q, key, prompter)
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
	if !errors.Is(err, errManyQuestions) {
		record.Answers = append(record.Answers, answer)
	}
	span.Text(trace.Question, q.ID)
	span.Text(trace.Rule, q.Rule)
	span.Text(trace.Outcome, answer.Outcome)
	switch {
	case err == nil, errors.As(err, &pending), ctx.Err() != nil:
		return err
	}
	answered := err.Error()
	if errors.Is(err, approval.ErrUnreachable) {
		answered += ": call it through a client that can ask (MCP elicitation), or have somebody answer with hako " +
			"approvals"
		if c.parent != nil {
			answered += ". Here it was called by a tool: called on its own it may be answered in a second call"
		}
	}
	return &NotAllowedError{
		Name: c.subject.offered, Rule: q.Rule, approvalOutcome: answered,
		Reason: fmt.Sprintf("the policy's rule %q requires approval, and %s", q.Rule, answered),
	}
}

// asker returns a function with which a broker asks about an operation within the call. A second call cannot bring the
// answer, because this one would have ended.
func (p *Pipeline) asker(c *served) func(context.Context, broker.Question) error {
	return func(ctx context.Context, about broker.Question) error {
		q := p.question(c)
		q.Detail, q.Rule, q.Reason = about.Text, about.Rule, judge.Explain(about.Reason)
		prompter := c.Prompter
		prompter.Later, prompter.Reply = false, nil
		err := p.ask(ctx, c, q, prompter)
		var refused *NotAllowedError
		if errors.As(err, &refused) {
			return errors.New(refused.approvalOutcome) // the broker adds question and rule
		}
		return err
	}
}

// takeQuota counts the call against the quotas.
func (p *Pipeline) takeQuota(_ context.Context, c *served) (err error) {
	if p.options.Quotas == nil {
		return nil
	}
	c.release, err = p.options.Quotas.Acquire(quotaCall(c))
	var used *quota.Error
	if errors.As(err, &used) {
		c.record.Quota = used.Rule
	}
	return err
}

func quotaCall(c *served) quota.Call {
	counted := quota.Call{
		Tenant: c.Caller.Tenant, User: c.Caller.User, Token: c.Caller.Token, Plugin: c.subject.source.Name,
		Tool: c.subject.name,
	}
	if c.parent != nil {
		outer := quotaCall(c.parent.served)
		counted.Parent = &outer
	}
	return counted
}

package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/pdk/abi"
)

// presentTime bounds how long the present value is read before people are asked.
const presentTime = 5 * time.Second

// comparer returns a function that adds to a question what the call would replace, or nil if the tool does not say. The
// value is read with a call of its own by the same caller: policy, grants, limits and audit log apply to it.
func (p *Pipeline) comparer(c *served) func(context.Context, *approval.Question) {
	s, arguments := c.subject, c.request.Arguments
	if s.replaces == nil || !replacesAnything(s.replaces, arguments) {
		return nil
	}
	return func(ctx context.Context, q *approval.Question) {
		present, problem := p.present(ctx, c)
		mask := func(text string) string { return text }
		if scanner := p.scanner(); scanner != nil {
			mask = scanner.Masked
		}
		name := s.replaces.Argument
		q.Compare(name, present, members(arguments)[name], problem, mask)
	}
}

// checkUnchanged fails if the call would now replace something else than the approved question showed. The value can
// still change between this check and the call.
func (p *Pipeline) checkUnchanged(ctx context.Context, q *approval.Question, prompter approval.Prompter) error {
	if q.Replaces == nil || prompter.Reply != nil { // an answer in a second call was compared with its question
		return nil
	}
	now := *q
	prompter.Compare(ctx, &now)
	if !now.Differs(q) {
		return nil
	}
	return &NotAllowedError{Name: q.Tool, Rule: q.Rule, Reason: approval.ErrChanged.Error()}
}

func replacesAnything(r *manifest.Replaces, arguments json.RawMessage) bool {
	given := members(arguments)
	for name, value := range r.When {
		if !bytes.Equal(given[name], value) {
			return false
		}
	}
	return true
}

// members are the members of a JSON object, and none for anything else.
func members(object json.RawMessage) (list map[string]json.RawMessage) {
	_ = json.Unmarshal(object, &list)
	return list
}

// present reads the value that the call would replace. problem explains why that is not possible.
func (p *Pipeline) present(ctx context.Context, c *served) (present json.RawMessage, problem manifest.Text) {
	s := c.subject
	tools := p.catalog.View().Tools
	i := slices.IndexFunc(tools,
		func(t *catalog.Tool) bool { return t.Source == s.source && t.Spec.Name == s.replaces.Tool })
	if i < 0 {
		return nil, unreadable
	}
	read, given := map[string]json.RawMessage{}, members(c.request.Arguments)
	for name, from := range s.replaces.Arguments {
		if value, ok := given[from]; ok {
			read[name] = value
		}
	}
	encoded, err := json.Marshal(read)
	if err != nil {
		return nil, unreadable
	}
	// Nobody is asked whether people may see a value before they are asked about replacing it.
	// The tool itself may ask nobody either: see unattended.
	if p.options.Policy().Decide(p.policyCall(c.Caller, c.via(), toolSubject(tools[i]),
		encoded)).Action != policy.Allow {
		return nil, unpermitted
	}
	ctx, cancel := context.WithTimeout(ctx, presentTime)
	defer cancel()
	problem = manifest.Text{}
	for _, locale := range []string{"en", "ja"} {
		caller := c.Caller
		caller.Locale = locale
		result, err := p.Call(ctx,
			&Call{Caller: caller, unattended: true, unshaped: true, parent: c.parent, granted: c.granted,
				Request: abi.Request{Method: abi.CallTool, Name: tools[i].Name, Arguments: encoded}})
		switch {
		case err != nil:
			return nil, unreadable
		case !result.Response.IsError:
			return presentIn(result.Response, s.replaces)
		case len(result.Response.Content) > 0:
			problem[locale] = clip.Runes(strings.TrimRight(result.Response.Content[0].Text, ".。"), maxProblem)
		}
	}
	if len(problem) == 0 {
		return nil, unreadable
	}
	return nil, problem
}

func presentIn(response *abi.Response, r *manifest.Replaces) (present json.RawMessage, problem manifest.Text) {
	result := members(response.StructuredContent)
	switch {
	case result[r.More] != nil:
		return nil, manifest.Text{"en": "it is too large", "ja": "サイズが大きすぎます"}
	case result[r.Result] == nil:
		return nil, unreadable
	}
	return result[r.Result], nil
}

// maxProblem bounds the error of a tool that cannot read a value, in characters.
const maxProblem = 200

var (
	unreadable  = manifest.Text{"en": "it could not be read", "ja": "読み込めませんでした"}
	unpermitted = manifest.Text{"en": "the policy does not let the caller read it", "ja": "ポリシーにより、依頼者は読み込めません"}
)

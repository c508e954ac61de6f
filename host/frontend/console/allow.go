package console

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

// allowJSON has rules that would allow a question's call for good. None is in force.
type allowJSON struct {
	Rules []approval.AllowRule `json:"rules"`
	// Before is the rule that asked. A rule that allows the call has to stand before it.
	Before string `json:"before"`
	// File receives proposals. Empty means that they cannot be saved here.
	File string `json:"file,omitempty"`
}

// allowRules proposes rules for the call of a question.
func (c *Console) allowRules(q *request) (any, error) {
	question, err := c.question(q)
	if err != nil {
		return nil, err
	}
	rules := append([]approval.AllowRule{}, question.AllowRules()...)
	return &allowJSON{Rules: rules, Before: question.Rule, File: c.options.Proposals}, nil
}

// question returns the question that the path of the request names.
func (c *Console) question(q *request) (*approval.Question, error) {
	question, err := c.options.Approvals.Question(q.Context(), q.PathValue("id"))
	if errors.Is(err, approval.ErrUnknown) {
		return nil, notFound("question", q.PathValue("id"))
	}
	return question, err
}

// proposeRule saves a rule for the call of a question as a proposal. It does not answer the question.
func (c *Console) proposeRule(q *request) (any, error) {
	var body struct{ Scope approval.Scope }
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	question, err := c.question(q)
	if err != nil {
		return nil, err
	}
	rules := question.AllowRules()
	i := slices.IndexFunc(rules, func(r approval.AllowRule) bool { return r.Scope == body.Scope })
	switch {
	case c.options.Proposals == "":
		return nil, &fault{code: codeUnavailable,
			text: said("there is no policy file: proposals are saved next to it")}
	case i < 0:
		return nil, invalid("there is no rule of the scope %q for this call", body.Scope)
	}
	operation := &audit.Operation{Action: "policy.propose", Subject: audit.Subject{Tenant: question.Caller.Tenant},
		Target: audit.Target{Plugin: question.Plugin, Name: question.Tool},
		Detail: map[string]string{"question": question.ID, "scope": string(body.Scope), "file": c.options.Proposals}}
	comment := fmt.Sprintf("Proposed by %s at %s, for a call of %s. To stand before %q.", q.session.Name,
		c.now().UTC().Format(time.RFC3339), question.Caller.User, question.Rule)
	err = c.audited(q, operation, func() error {
		return policy.Propose(q.Context(), c.options.Proposals, rules[i].YAML, comment)
	})
	if err != nil && faultOf(err) == nil {
		return nil, &fault{code: codeConflict, text: manifest.Text{
			"en": "The proposal cannot be saved: " + err.Error(), "ja": "提案を保存できません: " + err.Error(),
		}}
	} else if err != nil {
		return nil, err
	}
	return map[string]string{"file": c.options.Proposals}, nil
}

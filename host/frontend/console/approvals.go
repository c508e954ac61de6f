package console

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

// questionJSON is a waiting question.
type questionJSON struct {
	ID          string                `json:"id"`
	Tool        string                `json:"tool"`
	Plugin      string                `json:"plugin"`
	Description *approval.Description `json:"description"`
	Caller      callerJSON            `json:"caller"`
	Rule        string                `json:"rule"`
	Remember    string                `json:"remember,omitempty"`
	Asked       time.Time             `json:"asked"`
	Expires     time.Time             `json:"expires"`
	// May reports whether this person may answer. If not, Why is the reason.
	May bool   `json:"may"`
	Why string `json:"why,omitempty"`
}

type callerJSON struct {
	User     string `json:"user"`
	Tenant   string `json:"tenant"`
	Frontend string `json:"frontend"`
}

// maxQuestions and maxQuestionBytes bound the list, which browsers load again and again. The first question is always
// in it, whatever its size.
const (
	maxQuestions     = 200
	maxQuestionBytes = 512 << 10
)

// questionsJSON has the questions that have waited longest, and how many more wait.
type questionsJSON struct {
	listJSON[json.RawMessage]
	More int `json:"more,omitempty"`
}

func (c *Console) approvals(q *request) (any, error) {
	list, err := c.options.Approvals.Waiting(q.Context(), nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b *approval.Question) int { return a.Asked.Compare(b.Asked) })
	answer := &questionsJSON{listJSON: listJSON[json.RawMessage]{Items: []json.RawMessage{}}}
	size := 0
	for _, question := range list[:min(len(list), maxQuestions)] {
		item := newQuestion(question, q.language)
		if why := c.mayNot(q.session, question); why != nil {
			item.Why = why.In(q.language)
		} else {
			item.May = true
		}
		encoded, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		if size += len(encoded); size > maxQuestionBytes && len(answer.Items) > 0 {
			break
		}
		answer.Items = append(answer.Items, encoded)
	}
	answer.More = len(list) - len(answer.Items)
	return answer, nil
}

// approvalArguments returns the exact arguments of a question. The list, which browsers load again and again, leaves
// them out.
func (c *Console) approvalArguments(q *request) (any, error) {
	question, err := c.question(q)
	if err != nil {
		return nil, err
	}
	return map[string]string{"json": question.JSON()}, nil
}

func newQuestion(q *approval.Question, language string) *questionJSON {
	item := &questionJSON{
		ID: q.ID, Tool: q.Tool, Plugin: q.Plugin, Description: q.Describe(language),
		Caller: callerJSON{q.Caller.User, q.Caller.Tenant, q.Caller.Frontend},
		Rule:   q.Rule, Asked: q.Asked, Expires: q.Expires,
	}
	if q.Remember > 0 {
		item.Remember = q.Remember.String()
	}
	return item
}

// answerer returns the person as an approver. People of the console operate the host for all tenants. If the rule names
// no approvers, they answer as operators. If it names approvers, they must be among them.
func answerer(s *session, q *approval.Question) approval.Person {
	return approval.Person{Tenant: q.Caller.Tenant, User: s.Name, Groups: s.Groups, Operator: q.Approvers.IsZero()}
}

// mayNot returns why the person may not answer, or nil.
func (c *Console) mayNot(s *session, q *approval.Question) manifest.Text {
	switch {
	case !s.Role.includes(Approver):
		return faultRole(s.Role, Approver).text
	case !c.options.Approvals.May(q, answerer(s, q)):
		return faultApprover(q).text
	}
	return nil
}

// faultApprover names the approvers of the rule.
func faultApprover(q *approval.Question) *fault {
	return &fault{code: codeForbidden, text: manifest.Text{
		"en": "The policy's rule \"" + q.Rule + "\" requires the approval of: " + q.Approvers.In("en") + ".",
		"ja": "ポリシーのルール「" + q.Rule + "」により、回答できるのは次の人またはグループです: " + q.Approvers.In("ja"),
	}, remedy: manifest.Text{"en": "Ask one of them.", "ja": "該当する人に依頼してください。"}}
}

// maxReason bounds the reason of an answer, in bytes.
const maxReason = 500

// answerApproval answers a question.
func (c *Console) answerApproval(q *request) (any, error) {
	var body struct{ Answer, Reason string }
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if body.Answer != "yes" && body.Answer != "no" {
		return nil, invalid(`the answer is "yes" or "no"`)
	}
	if len(body.Reason) > maxReason {
		return nil, invalid("the reason is longer than %d bytes", maxReason)
	}
	question, err := c.question(q)
	if err != nil {
		return nil, err
	}
	by := answerer(q.session, question)
	if !c.options.Approvals.May(question, by) {
		return nil, faultApprover(question)
	}
	word := map[string]string{"yes": "approved", "no": "refused"}[body.Answer]
	err = c.audited(q, AnswerOperation(question, word, body.Reason), func() error {
		return c.options.Approvals.Answer(q.lasting(), question.ID, approval.Answer{Yes: body.Answer == "yes", By: by})
	})
	switch {
	case errors.Is(err, approval.ErrMayNot):
		return nil, faultApprover(question) // the policy has changed meanwhile
	case errors.Is(err, approval.ErrUnknown):
		return nil, faultAnswered
	case err != nil:
		return nil, err
	}
	return map[string]string{"answer": body.Answer}, nil
}

// AnswerOperation is the record of an operator's answer to a question. word is "approved" or "refused".
func AnswerOperation(q *approval.Question, word, reason string) *audit.Operation {
	d := &audit.Operation{Action: "approval.answer", Subject: audit.Subject{Tenant: q.Caller.Tenant},
		Target: audit.Target{Plugin: q.Plugin, Name: q.Tool},
		Detail: map[string]string{"question": q.ID, "answer": word, "rule": q.Rule, "asker": q.Caller.User}}
	if reason != "" {
		d.Detail["reason"] = strings.ToValidUTF8(reason, "�")
	}
	return d
}

var faultAnswered = &fault{code: codeConflict, text: manifest.Text{
	"en": "The question was answered already, has expired, or its call is over.",
	"ja": "この確認はすでに回答済みか、期限切れか、呼び出しが終了しています。",
}}

package console

import (
	"errors"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/manifest"
)

// frontend is what the audit log calls the console.
const frontend = "console"

// subject is who makes the request, for the audit log.
func (q *request) subject() audit.Subject {
	s := audit.Subject{Frontend: frontend, Address: q.address}
	if q.session != nil {
		s.User, s.Token, s.Session = q.session.Name, q.session.token(), q.session.short()
	}
	return s
}

// deed is something that a person does in the console, for the audit log.
type deed struct {
	action string
	// tenant is the one that it is about, if any.
	tenant string
	target audit.Target
	detail map[string]string
}

func (d *deed) event(q *request, outcome string, err error) *audit.Event {
	e := &audit.Event{Type: audit.TypeOperator, Action: d.action, Outcome: outcome, Subject: q.subject(),
		Target: d.target, Detail: d.detail}
	e.Subject.Tenant = d.tenant
	if err != nil {
		e.Error = err.Error()
	}
	return e
}

// audited does what the deed says, with a record before and one of how it ended. What cannot be recorded is not done,
// unless the options prefer that.
func (c *Console) audited(q *request, d *deed, do func() error) error {
	if c.options.Journal == nil {
		return do()
	}
	if err := c.options.Journal.Append(q.lasting(), d.event(q, "begun", nil)); err != nil {
		c.logger.Error("an action in the console cannot be recorded", "action", d.action, "err", err)
		if c.options.AuditOptional == nil || !c.options.AuditOptional() {
			return faultUnrecorded
		}
	}
	failure := do()
	outcome := "ok"
	if failure != nil {
		outcome = "failed"
	}
	c.note(q, d, outcome, failure)
	return failure
}

// note records something that has happened already, as far as that is possible.
func (c *Console) note(q *request, d *deed, outcome string, failure error) {
	if c.options.Journal == nil {
		return
	}
	if err := c.options.Journal.Append(q.lasting(), d.event(q, outcome, failure)); err != nil {
		c.logger.Error("an action in the console is not recorded", "action", d.action, "err", errors.Join(err, failure))
	}
}

var faultUnrecorded = &fault{code: codeUnavailable, text: manifest.Text{
	"en": "Nothing was done, because it could not be recorded in the audit log.", "ja": "監査ログに記録できないため、操作は行われませんでした。",
}, remedy: manifest.Text{"en": "The log of hako says why.", "ja": "理由は hako のログにあります。"}}

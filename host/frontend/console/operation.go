package console

import (
	"errors"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

// frontend is the console's name in the audit log.
const frontend = "console"

// subject returns the audit subject of the request.
func (q *request) subject() audit.Subject {
	s := audit.Subject{Frontend: frontend, Address: q.address}
	if q.session != nil {
		s.User, s.Token, s.Session = q.session.Name, q.session.token(), q.session.short()
	}
	return s
}

// audited performs an operation of the request's person and records it before and after. The Subject's tenant stays;
// the request supplies the rest. faultUnrecorded says that nothing was done.
func (c *Console) audited(q *request, o *audit.Operation, do func() error) error {
	q.sign(o)
	err := c.recorder().Do(q.lasting(), o, func() error {
		err := do()
		q.sign(o) // a login has its session only now
		return err
	})
	if errors.Is(err, audit.ErrUnrecorded) {
		return faultUnrecorded
	}
	return err
}

// note records an operation that was performed before. A failure is only logged.
func (c *Console) note(q *request, o *audit.Operation, outcome string, failure error) {
	q.sign(o)
	_ = c.recorder().Note(q.lasting(), o, outcome, failure)
}

// sign makes the request's person the subject of an operation.
func (q *request) sign(o *audit.Operation) {
	tenant := o.Subject.Tenant
	o.Subject = q.subject()
	o.Subject.Tenant = tenant
}

func (c *Console) recorder() *audit.Recorder {
	r := &audit.Recorder{
		Optional: c.options.Settings.AuditOptional(),
		Unrecorded: func(o *audit.Operation, outcome string, err error) {
			c.logger.Error("an action in the console is not recorded",
				"action", o.Action, "outcome", outcome, "err", err)
		},
	}
	if c.options.Journal != nil {
		r.Log = c.options.Journal
	}
	return r
}

var faultUnrecorded = &fault{code: codeUnavailable, text: manifest.Text{
	"en": "Nothing was done, because it could not be recorded in the audit log.", "ja": "監査ログに記録できないため、操作は行われませんでした。",
}, remedy: manifest.Text{"en": "hako's log has the reason.", "ja": "理由は hako のログにあります。"}}

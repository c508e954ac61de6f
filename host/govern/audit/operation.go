package audit

import (
	"context"
	"errors"
	"fmt"
	"os/user"
)

// Outcomes of operations.
const (
	OutcomeBegun   = "begun" // the next record of the operation has the end
	OutcomeOK      = "ok"
	OutcomeFailed  = "failed"
	OutcomeRefused = "refused" // the person who was asked said no
)

// Operation is an operation of an operator on the host, such as approving a plugin.
type Operation struct {
	Action  string
	Subject Subject
	Target  Target
	Detail  map[string]string
}

// Event returns the record of the operation with one of the outcomes above. failure may be nil.
func (o *Operation) Event(outcome string, failure error) *Event {
	e := &Event{
		Type: TypeOperator, Action: o.Action, Outcome: outcome,
		Subject: o.Subject, Target: o.Target, Detail: o.Detail,
	}
	if failure != nil {
		e.Error = failure.Error()
	}
	return e
}

// Appender writes events to an audit log. *Log implements it.
type Appender interface {
	Append(ctx context.Context, e *Event) error
}

// ErrUnrecorded means that an operation was not performed because its record could not be written.
var ErrUnrecorded = errors.New("nothing was done, because it could not be recorded")

// Recorder performs operations and records them.
type Recorder struct {
	// Log is the audit log. Nil records nothing.
	Log Appender
	// Optional performs operations that cannot be recorded.
	Optional bool
	// Unrecorded is called with the error of each record that could not be written. Nil ignores it, unless Do returns
	// it.
	Unrecorded func(o *Operation, outcome string, err error)
}

// Do records that the operation begins, performs it with do, and records how it ended. It returns do's error.
//
// If the first record cannot be written and Optional is not set, do is not called and the error is ErrUnrecorded. The
// second record is written even if ctx has ended meanwhile; its failure does not undo the operation and is only
// reported to Unrecorded.
func (r *Recorder) Do(ctx context.Context, o *Operation, do func() error) error {
	if r.Log == nil {
		return do()
	}
	if err := r.Note(ctx, o, OutcomeBegun, nil); err != nil && !r.Optional {
		return fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	failure := do()
	outcome := OutcomeOK
	if failure != nil {
		outcome = OutcomeFailed
	}
	_ = r.Note(context.WithoutCancel(ctx), o, outcome, failure) // reported to Unrecorded
	return failure
}

// Note records an operation that was performed before, or refused. failure may be nil.
func (r *Recorder) Note(ctx context.Context, o *Operation, outcome string, failure error) error {
	if r.Log == nil {
		return nil
	}
	err := r.Log.Append(ctx, o.Event(outcome, failure))
	if err != nil && r.Unrecorded != nil {
		r.Unrecorded(o, outcome, err)
	}
	return err
}

// ProcessUser returns the name of the operating system's user that runs this process, or "unknown".
func ProcessUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

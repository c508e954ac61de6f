package approval

import (
	"context"
	"database/sql"
	"errors"
)

// Outcome returns the outcome of a question, and who answered it: Pending while it waits, Yes, No, Expired or
// Withdrawn. It fails with ErrUnknown if there is none, or with the store's error.
func (d *Queue) Outcome(ctx context.Context, id string) (outcome, by string, err error) {
	var state string
	var expires int64
	err = d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT state, answered_by, expires FROM approval WHERE id = $1`,
			id).Scan(&state, &by, &expires)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", "", ErrUnknown
	case err != nil:
		return "", "", err
	case state == stateWaiting && expires <= d.options.Now().UnixMilli():
		return Expired, "", nil
	}
	return outcomes[state], by, nil
}

// outcomes maps states to outcomes.
var outcomes = map[string]string{
	stateWaiting: Pending, stateYes: Yes, stateUsed: Yes, stateNo: No, stateExpired: Expired, stateWithdrawn: Withdrawn,
}

// Withdraw ends a waiting question because its call has ended. Other questions do not change. Errors are the store's.
func (d *Queue) Withdraw(ctx context.Context, id string) error {
	return d.endWaiting(ctx, id, stateWithdrawn)
}

// Outcomes of a question, for records and metrics.
const (
	Yes         = "yes"
	Remembered  = "remembered" // an earlier yes is valid
	No          = "no"
	Pending     = "pending" // the answer comes with a second call
	Expired     = "expired"
	Unreachable = "unreachable"
	Withdrawn   = "withdrawn" // the call was cancelled
	Invalid     = "invalid"   // the answer was replayed, altered, or not by an approver
	Failed      = "failed"    // the store failed
)

// Outcomes lists all outcomes.
var Outcomes = []string{Yes, Remembered, No, Pending, Expired, Unreachable, Withdrawn, Invalid, Failed}

// OutcomeOf returns the outcome of a question for which Ask returned err.
func OutcomeOf(q *Question, err error) string {
	var refused *RefusedError
	var pending *PendingError
	switch {
	case err == nil && q.ID == "":
		return Remembered
	case err == nil:
		return Yes
	case errors.As(err, &refused):
		return No
	case errors.As(err, &pending):
		return Pending
	case errors.Is(err, ErrExpired):
		return Expired
	case errors.Is(err, ErrUnreachable):
		return Unreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Withdrawn
	case errors.Is(err, ErrMayNot), errors.Is(err, ErrOther), errors.Is(err, ErrUnknown),
		errors.Is(err, ErrChanged):
		return Invalid
	}
	return Failed
}

package chat

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
)

// feedbackTable is the second step of the tables. Its column door is the frontend.
const feedbackTable = `CREATE TABLE chat_feedback (
	tenant TEXT NOT NULL,
	conversation TEXT NOT NULL,
	answer BIGINT NOT NULL,
	person TEXT NOT NULL,
	door TEXT NOT NULL,
	good BIGINT NOT NULL,
	written BIGINT NOT NULL,
	PRIMARY KEY (tenant, conversation, answer, person)
)`

// Feedback is a person's rating of an answer.
type Feedback struct {
	Tenant, Conversation string
	// Answer is the Answer.Number.
	Answer int64
	// Person is the author, Frontend the frontend that they used.
	Person, Frontend string
	Good             bool
	Written          time.Time
	// Question and Text are the complete question and answer. Only Feedbacks fills them in.
	Question, Text string
}

// Rate saves the caller's rating of an answer, replacing an earlier one. It is deleted with the conversation. Any
// caller of the tenant may rate: frontends decide who takes part. It fails with ErrUnknown if there is no such answer,
// or with the store's error.
func (e *Engine) Rate(_ context.Context, who pipeline.Caller, conversation string, answer int64, good bool) error {
	f := Feedback{Tenant: who.Tenant, Conversation: conversation, Answer: answer, Person: who.User,
		Frontend: who.Frontend,
		Good:     good, Written: e.options.Now()}
	changed := false
	err := e.conversations.changes.write(func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = rate(ctx, tx, f)
		return err
	})
	if changed && e.options.Rated != nil {
		e.options.Rated(f)
	}
	return err
}

// rate reports whether f differs from the saved rating.
func rate(ctx context.Context, tx *sql.Tx, f Feedback) (changed bool, err error) {
	var role string
	err = tx.QueryRowContext(ctx,
		`SELECT role FROM chat_message WHERE tenant = $1 AND conversation = $2 AND number = $3`,
		f.Tenant, f.Conversation, f.Answer).Scan(&role)
	if errors.Is(err, sql.ErrNoRows) || err == nil && role != string(llm.RoleAssistant) {
		return false, ErrUnknown
	}
	if err != nil {
		return false, err
	}
	good := 0
	if f.Good {
		good = 1
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO chat_feedback
			(tenant, conversation, answer, person, door, good, written) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (tenant, conversation, answer, person)
			DO UPDATE SET good = excluded.good, written = excluded.written
		WHERE chat_feedback.good <> excluded.good`, f.Tenant, f.Conversation, f.Answer, f.Person, f.Frontend, good,
		f.Written.UnixMilli())
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// maxFeedback bounds the listed feedback.
const maxFeedback = 1000

// Feedbacks lists what people thought of answers, the newest first, at most 1,000. It is for operators: it contains
// other people's messages. Errors are the store's.
func Feedbacks(ctx context.Context, s *store.Store) ([]Feedback, error) {
	if err := s.Migrate(ctx, "chat", migrations...); err != nil {
		return nil, err
	}
	const query = `SELECT f.tenant, f.conversation, f.answer, f.person, f.door, f.good, f.written, a.text,
		(SELECT q.text FROM chat_message q WHERE q.tenant = f.tenant AND q.conversation = f.conversation
			AND q.number < f.answer AND q.role = $1 ORDER BY q.number DESC LIMIT 1)
		FROM chat_feedback f
		JOIN chat_message a ON a.tenant = f.tenant AND a.conversation = f.conversation AND a.number = f.answer
		ORDER BY f.written DESC, f.tenant, f.conversation, f.answer, f.person LIMIT $2`
	return store.List(ctx, s, scanFeedback, query, llm.RoleUser, maxFeedback)
}

func scanFeedback(rows *sql.Rows) (f Feedback, err error) {
	var good, written int64
	var question sql.NullString
	err = rows.Scan(&f.Tenant, &f.Conversation, &f.Answer, &f.Person, &f.Frontend, &good, &written, &f.Text, &question)
	f.Good, f.Written, f.Question = good == 1, time.UnixMilli(written), question.String
	return f, err
}

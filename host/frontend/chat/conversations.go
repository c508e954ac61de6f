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

// Conversation is a conversation begun by a person.
type Conversation struct {
	// ID is Turn.Conversation.
	ID string
	// Title is the beginning of the first message.
	Title string
	// Used is the time of the last turn.
	Used time.Time
	// Use is the total of all turns.
	Use Use
	// Messages are ordered from the oldest on. Conversations does not fill them in.
	Messages []Message
}

// Message is a message of a person or a final answer of the model.
type Message struct {
	Role llm.Role
	// Person is the author, or empty for the model.
	Person string
	Text   string
}

// maxListed bounds the conversations in a list.
const maxListed = 200

const columns = `id, title, used, tokens, cost`

func (c *Conversation) scan(scan func(...any) error) error {
	var used int64
	err := scan(&c.ID, &c.Title, &used, &c.Use.Tokens, &c.Use.Cost)
	c.Used = time.UnixMilli(used)
	return err
}

// Conversations lists the conversations that the caller began, the most recently used first, at most 200. Errors come
// from the store.
func (e *Engine) Conversations(ctx context.Context, who pipeline.Caller) ([]Conversation, error) {
	return store.List(ctx, e.options.Store, func(rows *sql.Rows) (c Conversation, err error) {
		err = c.scan(rows.Scan)
		return c, err
	}, `SELECT `+columns+` FROM chat_conversation WHERE tenant = $1 AND owner = $2 ORDER BY used DESC, id LIMIT $3`,
		who.Tenant, who.User, maxListed)
}

// Conversation returns a conversation that the caller began. It fails with ErrUnknown if there is none, or with the
// store's error.
func (e *Engine) Conversation(ctx context.Context, who pipeline.Caller, id string) (*Conversation, error) {
	c := new(Conversation)
	err := e.options.Store.View(ctx, func(tx *sql.Tx) error {
		err := c.scan(tx.QueryRowContext(ctx,
			`SELECT `+columns+` FROM chat_conversation WHERE tenant = $1 AND id = $2 AND owner = $3`,
			who.Tenant, id, who.User).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err != nil {
			return err
		}
		c.Messages, err = messages(ctx, tx, place{who.Tenant, id})
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func messages(ctx context.Context, tx *sql.Tx, p place) ([]Message, error) {
	return store.Select(ctx, tx, func(rows *sql.Rows) (m Message, err error) {
		err = rows.Scan(&m.Role, &m.Person, &m.Text)
		return m, err
	}, `SELECT role, person, text FROM chat_message WHERE tenant = $1 AND conversation = $2 ORDER BY number`,
		p.tenant, p.id)
}

// Delete deletes a conversation that the caller began, with all messages, including those of others. Its use still
// counts for the day. It fails with ErrUnknown if there is none, or with the store's error.
func (e *Engine) Delete(ctx context.Context, who pipeline.Caller, id string) error {
	return e.conversations.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		var found string
		err := tx.QueryRowContext(ctx,
			`DELETE FROM chat_conversation WHERE tenant = $1 AND id = $2 AND owner = $3 RETURNING id`,
			who.Tenant, id, who.User).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"chat_message", "chat_feedback"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE tenant = $1 AND conversation = $2`,
				who.Tenant, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Today returns the caller's use since midnight in Options.Zone. Errors come from the store.
func (e *Engine) Today(ctx context.Context, who pipeline.Caller) (Use, error) {
	day := e.options.Now().In(e.options.Zone).Format(time.DateOnly)
	used, err := e.conversations.spent(ctx, place{tenant: who.Tenant}, who.User, day)
	return used[1], err
}

// useRetention is the time for which daily use is kept.
const useRetention = 400 * 24 * time.Hour

// Forget deletes the conversations that were last used longer ago than retain and have no running turn; zero keeps all.
// It also deletes daily use older than 400 days. One of the processes that share the store calls it periodically.
// Errors come from the store.
func Forget(ctx context.Context, s *store.Store, retain time.Duration) error {
	if err := s.Migrate(ctx, "chat", migrations...); err != nil {
		return err
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM chat_use WHERE day < $1`,
			now.Add(-useRetention).Format(time.DateOnly))
		if err != nil || retain <= 0 {
			return err
		}
		return forget(ctx, tx, now.Add(-retain))
	})
}

// forget deletes conversations last used earlier than before.
func forget(ctx context.Context, tx *sql.Tx, before time.Time) error {
	for _, table := range []string{"chat_message", "chat_feedback"} {
		_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE EXISTS (SELECT 1 FROM chat_conversation c
			WHERE c.tenant = `+table+`.tenant AND c.id = `+table+`.conversation AND c.used < $1 AND c.running = '')`,
			before.UnixMilli())
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM chat_conversation WHERE used < $1 AND running = ''`, before.UnixMilli())
	return err
}

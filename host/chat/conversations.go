package chat

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
)

// Conversation is one that a person began.
type Conversation struct {
	// ID is Turn.Conversation.
	ID string
	// Title is how the first message begins.
	Title       string
	Began, Used time.Time
	// Use is what all turns have used.
	Use Use
	// Messages are what was said, oldest first. Conversations leaves them out.
	Messages []Message
}

// Message is what a person or the model said in the end.
type Message struct {
	Role llm.Role
	// Person is who said it; empty for the model.
	Person  string
	Text    string
	Written time.Time
}

// maxListed is how many conversations are listed.
const maxListed = 200

const columns = `id, title, began, used, tokens, cost`

func (c *Conversation) scan(scan func(...any) error) error {
	var began, used int64
	err := scan(&c.ID, &c.Title, &began, &used, &c.Use.Tokens, &c.Use.Cost)
	c.Began, c.Used = time.UnixMilli(began), time.UnixMilli(used)
	return err
}

// Conversations lists those that the caller began, the last used first, at most 200. Errors are the store's.
func (e *Engine) Conversations(ctx context.Context, who pipeline.Caller) ([]Conversation, error) {
	return store.List(ctx, e.options.Store, func(rows *sql.Rows) (c Conversation, err error) {
		err = c.scan(rows.Scan)
		return c, err
	}, `SELECT `+columns+` FROM chat_conversation WHERE tenant = $1 AND owner = $2 ORDER BY used DESC, id LIMIT $3`, who.Tenant, who.User, maxListed)
}

// Conversation returns one that the caller began. It fails with ErrUnknown if there is none, or with the store's error.
func (e *Engine) Conversation(ctx context.Context, who pipeline.Caller, id string) (*Conversation, error) {
	c := new(Conversation)
	err := e.options.Store.View(ctx, func(tx *sql.Tx) error {
		err := c.scan(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM chat_conversation WHERE tenant = $1 AND id = $2 AND owner = $3`,
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
		var written int64
		err = rows.Scan(&m.Role, &m.Person, &m.Text, &written)
		m.Written = time.UnixMilli(written)
		return m, err
	}, `SELECT role, person, text, written FROM chat_message WHERE tenant = $1 AND conversation = $2 ORDER BY number`, p.tenant, p.id)
}

// Delete deletes a conversation that the caller began, and all that was said in it, by others too. What it used still counts for the
// day. It fails with ErrUnknown if there is none, or with the store's error.
func (e *Engine) Delete(ctx context.Context, who pipeline.Caller, id string) error {
	return e.book.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		var found string
		err := tx.QueryRowContext(ctx, `DELETE FROM chat_conversation WHERE tenant = $1 AND id = $2 AND owner = $3 RETURNING id`,
			who.Tenant, id, who.User).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"chat_message", "chat_feedback"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE tenant = $1 AND conversation = $2`, who.Tenant, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Today is what the caller has used since the day began in Options.Zone. Errors are the store's.
func (e *Engine) Today(ctx context.Context, who pipeline.Caller) (Use, error) {
	day := e.options.Now().In(e.options.Zone).Format(time.DateOnly)
	used, err := e.book.spent(ctx, place{tenant: who.Tenant}, who.User, day)
	return used[1], err
}

// keepUse is how long it is kept what was used in a day.
const keepUse = 400 * 24 * time.Hour

// Forget deletes the conversations in the store that were last used longer ago than retain, with all that was said in them, unless a turn of
// theirs is under way; zero keeps them for ever. It also deletes what was used on days more than 400 days ago. One of the processes over the
// store calls it from time to time. Errors are the store's.
func Forget(ctx context.Context, s *store.Store, retain time.Duration) error {
	if err := s.Migrate(ctx, "chat", migrations...); err != nil {
		return err
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM chat_use WHERE day < $1`, now.Add(-keepUse).Format(time.DateOnly))
		if err != nil || retain <= 0 {
			return err
		}
		return forget(ctx, tx, now.Add(-retain))
	})
}

// forget deletes conversations that were not used since before.
func forget(ctx context.Context, tx *sql.Tx, before time.Time) error {
	for _, table := range []string{"chat_message", "chat_feedback"} {
		_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE EXISTS (SELECT 1 FROM chat_conversation c
			WHERE c.tenant = `+table+`.tenant AND c.id = `+table+`.conversation AND c.used < $1 AND c.running = '')`, before.UnixMilli())
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM chat_conversation WHERE used < $1 AND running = ''`, before.UnixMilli())
	return err
}

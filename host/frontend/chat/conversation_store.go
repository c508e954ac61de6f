package chat

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/store"
)

// migrations creates the tables. Released steps never change. A message's ending is empty for a complete answer, else
// one of the endings. running is the name of the process that is running a turn.
var migrations = []string{`CREATE TABLE chat_conversation (
	tenant TEXT NOT NULL,
	id TEXT NOT NULL,
	owner TEXT NOT NULL,
	title TEXT NOT NULL,
	locale TEXT NOT NULL,
	began BIGINT NOT NULL,
	used BIGINT NOT NULL,
	last BIGINT NOT NULL,
	summary TEXT NOT NULL,
	summarised BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	cost DOUBLE PRECISION NOT NULL,
	running TEXT NOT NULL,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX chat_conversation_owner ON chat_conversation (tenant, owner, used);
CREATE INDEX chat_conversation_used ON chat_conversation (used);
CREATE INDEX chat_conversation_running ON chat_conversation (running);
CREATE TABLE chat_message (
	tenant TEXT NOT NULL,
	conversation TEXT NOT NULL,
	number BIGINT NOT NULL,
	role TEXT NOT NULL,
	person TEXT NOT NULL,
	text TEXT NOT NULL,
	ending TEXT NOT NULL,
	written BIGINT NOT NULL,
	PRIMARY KEY (tenant, conversation, number)
);
CREATE TABLE chat_use (
	day TEXT NOT NULL,
	tenant TEXT NOT NULL,
	person TEXT NOT NULL,
	tokens BIGINT NOT NULL,
	cost DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (day, tenant, person)
)`, feedbackTable}

// Endings of answers.
const (
	endingStopped = "stopped" // the person stopped it
	endingFailed  = "failed"  // the text says why there is none
	endingCut     = "cut"     // the process died
)

// conversationStore keeps conversations in the host's store.
type conversationStore struct {
	store   *store.Store
	changes *committer
	process *process
}

func openConversations(ctx context.Context, s *store.Store, logger *slog.Logger) (*conversationStore, error) {
	if err := s.Migrate(ctx, "chat", migrations...); err != nil {
		return nil, err
	}
	b := &conversationStore{store: s}
	var err error
	if b.process, err = join(ctx, s); err != nil {
		return nil, err
	}
	b.changes = newCommitter(s, logger)
	return b, nil
}

func (b *conversationStore) close() {
	b.changes.close()
	b.process.close()
}

// state is a conversation at the start of a turn.
type state struct {
	owner, running string
	summary        string
	// summarised is the number of the last message covered by summary, last the number of the last message.
	summarised, last int64
	messages         []message
}

type message struct {
	number       int64
	role         llm.Role
	person       string // empty for the model
	text, ending string
}

// runningError means that another process is running a turn of the conversation.
type runningError struct{ process string }

func (e *runningError) Error() string {
	return "process " + e.process + " answers in this conversation"
}

// begin saves the person's message and returns the conversation before it.
func (b *conversationStore) begin(p place, person, text, locale string, shared bool, now time.Time) (*state, error) {
	var s *state
	err := b.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		var err error
		if s, err = getOrCreate(ctx, tx, p, person, storable(title(text)), locale, now); err != nil {
			return err
		}
		switch {
		case s.owner != person && !shared:
			return ErrNotYours
		case s.last < 0 || s.last > maxMessages:
			return errDamaged
		// If it is this process, the end of an earlier turn could not be saved.
		case s.running != "" && s.running != b.process.name():
			return &runningError{s.running}
		}
		if s.messages, err = messagesAfter(ctx, tx, p, s.summarised); err != nil {
			return err
		}
		s.last++
		if _, err := tx.ExecContext(ctx,
			`UPDATE chat_conversation SET running = $1, last = $2, locale = $3 WHERE tenant = $4 AND id = $5`,
			b.process.name(), s.last, locale, p.tenant, p.id); err != nil {
			return err
		}
		return say(ctx, tx, p, message{s.last, llm.RoleUser, person, text, ""}, now)
	})
	return s, err
}

// getOrCreate returns the conversation, creating it if it is new.
func getOrCreate(ctx context.Context, tx *sql.Tx, p place, owner, title, locale string, now time.Time) (*state, error) {
	const query = `INSERT INTO chat_conversation
			(tenant, id, owner, title, locale, began, used, last, summary, summarised, tokens, cost, running)
		VALUES ($1, $2, $3, $4, $5, $6, $6, 0, '', 0, 0, 0, '')
		ON CONFLICT (tenant, id) DO UPDATE SET used = excluded.used
		RETURNING owner, running, substr(summary, 1, 1000000), summarised, last`
	s := new(state)
	err := tx.QueryRowContext(ctx, query, p.tenant, p.id, owner, title, locale, now.UnixMilli()).
		Scan(&s.owner, &s.running, &s.summary, &s.summarised, &s.last)
	return s, err
}

const (
	// maxMessages bounds the number of a conversation's last message.
	maxMessages = 1 << 40
	// maxHistory bounds the messages that are read for a turn, in characters.
	maxHistory = 16 << 20
	// maxProcesses bounds the dead processes whose turns are ended at once.
	maxProcesses = 1000
)

// errDamaged is for a conversation that something else than hako has changed.
var errDamaged = errors.New("the conversation in the store is damaged: start a new one")

// messagesAfter returns the messages with higher numbers than after: the newest ones that fit into maxHistory.
func messagesAfter(ctx context.Context, tx *sql.Tx, p place, after int64) ([]message, error) {
	return store.Select(ctx, tx, func(rows *sql.Rows) (m message, err error) {
		err = rows.Scan(&m.number, &m.role, &m.person, &m.text, &m.ending)
		return m, err
	}, `SELECT number, role, person, text, ending FROM (
			SELECT number, role, person, text, ending,
				SUM(1 + length(person) + length(text)) OVER (ORDER BY number DESC) AS size
			FROM chat_message WHERE tenant = $1 AND conversation = $2 AND number > $3 AND role IN ($4, $5)
		) AS newest WHERE size <= $6 ORDER BY number`,
		p.tenant, p.id, after, llm.RoleUser, llm.RoleAssistant, maxHistory)
}

func say(ctx context.Context, tx *sql.Tx, p place, m message, now time.Time) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO chat_message (tenant, conversation, number, role, person, text, ending, written)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, p.tenant, p.id, m.number, m.role, m.person, storable(m.text),
		m.ending, now.UnixMilli())
	return err
}

// storable replaces what PostgreSQL cannot store, zero bytes and invalid UTF-8, which people and models may send.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// end saves the answer and returns its number. A conversation deleted in the meantime stays deleted.
func end(ctx context.Context, tx *sql.Tx, p place, text, ending string, now time.Time) (last int64, err error) {
	err = tx.QueryRowContext(ctx,
		`UPDATE chat_conversation SET running = '', last = last + 1, used = $1 WHERE tenant = $2 AND id = $3 RETURNING last`,
		now.UnixMilli(), p.tenant, p.id).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return last, say(ctx, tx, p, message{number: last, role: llm.RoleAssistant, text: text, ending: ending}, now)
}

// saveSummary replaces the messages up to the number upTo by a summary.
func (b *conversationStore) saveSummary(p place, summary string, upTo int64) error {
	return b.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`UPDATE chat_conversation SET summary = $1, summarised = $2 WHERE tenant = $3 AND id = $4`,
			storable(summary), upTo, p.tenant, p.id)
		return err
	})
}

// endInterrupted ends the turns that a dead process left running, and lists them.
func (b *conversationStore) endInterrupted(name string, note func(locale string) string,
	now time.Time) (list []interruption, err error) {
	err = b.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		if list, err = running(ctx, tx, name); err != nil {
			return err
		}
		for _, i := range list {
			if _, err := end(ctx, tx, i.place, note(i.locale), endingCut, now); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

func running(ctx context.Context, tx *sql.Tx, name string) ([]interruption, error) {
	return store.Select(ctx, tx, func(rows *sql.Rows) (i interruption, err error) {
		err = rows.Scan(&i.tenant, &i.id, &i.locale)
		return i, err
	}, `SELECT tenant, id, locale FROM chat_conversation WHERE running = $1 ORDER BY tenant, id`, name)
}

// processes lists the names of processes with running turns, including those that died during one.
func (b *conversationStore) processes(ctx context.Context) ([]string, error) {
	return store.List(ctx, b.store, store.Column[string],
		`SELECT DISTINCT running FROM chat_conversation WHERE running <> '' AND length(running) <= 20 LIMIT $1`,
		maxProcesses)
}

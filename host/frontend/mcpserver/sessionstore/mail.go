package sessionstore

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"database/sql"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Kinds of mail.
const (
	// Ended means that the session has ended.
	Ended = "ended"
	// Changed means that the session's log level or subscriptions have changed.
	Changed = "changed"
	// Message carries a sealed message of the session's client to the replica that waits for it: a response or a
	// cancellation.
	Message = "message"
	// Request is a client's request, sealed, that continues a pending call. Its result is sent on the stream
	// of the mail's ID.
	Request = "request"
	// Left notifies that the client of a Request, whose ID is the body, has left.
	Left = "left"
	// Updated means that resources have changed. It belongs to no session.
	Updated = "updated"
)

// Mail is a message from one replica to another.
type Mail struct {
	// ID identifies the mail. Send assigns one if it is empty.
	ID   string
	Kind string
	// Session is the key of the session, or of the call that waits, or empty.
	Session string
	Body    string
}

// topic is the channel on which mail for a replica is announced.
func topic(replica string) string { return "mcp mail " + replica }

// Send sends a message to all other replicas.
func (s *SQL) Send(ctx context.Context, mail Mail) error {
	others, err := s.others(ctx)
	if err != nil || len(others) == 0 {
		return err
	}
	return s.update(ctx, func(tx *sql.Tx, now int64) error { return s.send(ctx, tx, now, others, mail) })
}

// SendTo sends a message to one replica. It reports false if that replica has ended.
func (s *SQL) SendTo(ctx context.Context, replica string, mail Mail) (sent bool, err error) {
	if lives, err := s.Lives(ctx, replica); err != nil || !lives {
		return false, err
	}
	return true, s.update(ctx, func(tx *sql.Tx, now int64) error {
		return s.send(ctx, tx, now, []string{replica}, mail)
	})
}

// Ask sends a Request to a replica, with a stream for its answer. It reports false if the replica has ended.
func (s *SQL) Ask(ctx context.Context, replica string, mail Mail) (sent bool, err error) {
	if lives, err := s.Lives(ctx, replica); err != nil || !lives {
		return false, err
	}
	return true, s.update(ctx, func(tx *sql.Tx, now int64) error {
		if err := openStream(ctx, tx, now, mail.Session, mail.ID, replica, "[]"); err != nil {
			return err
		}
		return s.send(ctx, tx, now, []string{replica}, mail)
	})
}

// others are the other replicas that live.
func (s *SQL) others(ctx context.Context) (ids []string, err error) {
	list, err := s.store.Replicas(ctx)
	for _, replica := range list {
		if replica.ID != s.Replica() {
			ids = append(ids, replica.ID)
		}
	}
	return ids, err
}

func (s *SQL) send(ctx context.Context, tx *sql.Tx, now int64, targets []string, mail Mail) error {
	for _, target := range targets {
		_, err := tx.ExecContext(ctx, `INSERT INTO mcp_mail (id, target, kind, session, body, sent)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			cmp.Or(mail.ID, crand.Text()), target, mail.Kind, mail.Session, mail.Body, now)
		if err != nil {
			return err
		}
		if err := s.store.Announce(ctx, tx, topic(target)); err != nil {
			return err
		}
	}
	return nil
}

// Receive delivers the notifications of other replicas, each once and in order, until ctx ends. Within a
// millisecond, Left is the last, so that it comes after its Request. Failures of the store are reported to failed, and
// the mail is read later.
func (s *SQL) Receive(ctx context.Context, receive func(Mail), failed func(error)) {
	changes := s.store.Changes(ctx, topic(s.Replica()))
	retry := time.NewTicker(10 * time.Second)
	defer retry.Stop()
	delivered := map[string]bool{} // but perhaps not deleted yet
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-retry.C:
		}
		if err := s.collect(ctx, delivered, receive); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// maxMail limits the messages that are read at once, and maxMailBytes the length of a body, which is more than any
// sealed request has. A longer body was not sent by a replica, and is deleted unread.
const (
	maxMail      = 100
	maxMailBytes = 16 << 20
)

// collect delivers and deletes mail until there is no more.
func (s *SQL) collect(ctx context.Context, delivered map[string]bool, receive func(Mail)) error {
	for {
		if n, err := s.collectSome(ctx, delivered, receive); err != nil || n < maxMail {
			return err
		}
	}
}

// collectSome delivers up to maxMail messages and then deletes them, so that a lost connection loses none.
func (s *SQL) collectSome(ctx context.Context, delivered map[string]bool, receive func(Mail)) (n int, err error) {
	var mail []Mail
	err = s.store.View(ctx, func(tx *sql.Tx) (err error) {
		mail, err = store.Select(ctx, tx, scanMail,
			`SELECT id, CASE WHEN length(body) > $1 THEN '' ELSE kind END, session,
			CASE WHEN length(body) > $1 THEN '' ELSE body END FROM mcp_mail WHERE target = $2
			ORDER BY sent, CASE kind WHEN $3 THEN 1 ELSE 0 END LIMIT $4`,
			maxMailBytes, s.Replica(), Left, maxMail)
		return err
	})
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(mail))
	for i, m := range mail {
		ids[i] = m.ID
		if !delivered[m.ID] && m.Kind != "" {
			delivered[m.ID] = true
			receive(m)
		}
	}
	for chunk := range chunks(ids) {
		list, args := named(chunk)
		err := s.store.Update(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM mcp_mail WHERE id IN ("+list+")", args...)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	clear(delivered)
	return len(mail), nil
}

func scanMail(rows *sql.Rows) (m Mail, err error) {
	err = rows.Scan(&m.ID, &m.Kind, &m.Session, &m.Body)
	return m, err
}

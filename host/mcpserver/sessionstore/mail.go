package sessionstore

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Kinds of mail.
const (
	// Ended says that the session has ended.
	Ended = "ended"
	// Changed says that the session's level or subscriptions are others.
	Changed = "changed"
	// Message is one of the session's client for whoever waits for it: an answer to a request of the server's, or a cancellation.
	Message = "message"
	// Updated says that resources have changed. It is of no session.
	Updated = "updated"
)

// Mail is what one replica tells another.
type Mail struct {
	Kind string
	// Session is the session's key, or empty.
	Session string
	Body    string
}

// topic is where mail for a replica is announced.
func topic(replica string) string { return "mcp mail " + replica }

// Send tells all other replicas.
func (s *Store) Send(ctx context.Context, mail Mail) error {
	others, err := s.others(ctx)
	if err != nil || len(others) == 0 {
		return err
	}
	return s.sendTo(ctx, others, mail)
}

// SendTo tells one replica.
func (s *Store) SendTo(ctx context.Context, replica string, mail Mail) error {
	return s.sendTo(ctx, []string{replica}, mail)
}

func (s *Store) sendTo(ctx context.Context, targets []string, mail Mail) error {
	return s.update(ctx, func(tx *sql.Tx, now int64) error { return s.send(ctx, tx, now, targets, mail) })
}

// others are the other replicas that live.
func (s *Store) others(ctx context.Context) (ids []string, err error) {
	list, err := s.store.Replicas(ctx)
	for _, replica := range list {
		if replica.ID != s.Replica() {
			ids = append(ids, replica.ID)
		}
	}
	return ids, err
}

func (s *Store) send(ctx context.Context, tx *sql.Tx, now int64, targets []string, mail Mail) error {
	for _, target := range targets {
		_, err := tx.ExecContext(ctx, "INSERT INTO mcp_mail (id, target, kind, session, body, sent) VALUES ($1, $2, $3, $4, $5, $6)",
			crand.Text(), target, mail.Kind, mail.Session, mail.Body, now)
		if err != nil {
			return err
		}
		if err := s.store.Announce(ctx, tx, topic(target)); err != nil {
			return err
		}
	}
	return nil
}

// Receive passes on what other replicas tell this one, in no order, until ctx ends. Failures of the store are reported to failed, and the
// mail is read later.
func (s *Store) Receive(ctx context.Context, take func(Mail), failed func(error)) {
	rings := s.store.Changes(ctx, topic(s.Replica()))
	retry := time.NewTicker(10 * time.Second)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rings:
		case <-retry.C:
		}
		mail, err := s.collect(ctx)
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		for _, m := range mail {
			take(m)
		}
	}
}

// collect takes the mail out of the store.
func (s *Store) collect(ctx context.Context) (mail []Mail, err error) {
	err = s.store.Update(ctx, func(tx *sql.Tx) error {
		mail, err = store.Select(ctx, tx, scanMail, "DELETE FROM mcp_mail WHERE target = $1 RETURNING kind, session, body", s.Replica())
		return err
	})
	return mail, err
}

func scanMail(rows *sql.Rows) (m Mail, err error) {
	err = rows.Scan(&m.Kind, &m.Session, &m.Body)
	return m, err
}

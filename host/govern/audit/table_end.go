package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// end is the end of the log in a table during a transaction, with the records to add.
type end struct {
	options  *Options
	key      *key
	chain    chain
	unsigned int
	// moved reports whether the head has to be written.
	moved  bool
	signed time.Time // zero if nothing was signed

	seqs, times []int64
	lines       [][]byte
}

// end reads the end of the log. Deviations from the head become a record.
func (t *table) end(ctx context.Context, tx *sql.Tx) (*end, error) {
	if t.options.Sync {
		if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = on"); err != nil {
			return nil, err
		}
	}
	e := &end{options: t.options, key: t.key}
	h, last, err := e.read(ctx, tx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	seen := t.seen
	t.mu.Unlock()
	e.chain = chain{seq: h.Seq, hash: h.Hash}
	if h.Seq == last && !h.forged && (seen.seq < h.Seq || seen.seq == h.Seq && seen.hash == h.Hash) {
		return e, nil
	}
	if e.chain, err = chainEnd(ctx, tx); err != nil {
		return nil, err
	}
	if seen.seq > h.Seq {
		h.Seq, h.Hash = seen.seq, seen.hash
	}
	t.options.Logger.Error("the end of the audit log does not match its head", "last", e.chain.seq, "expected", h.Seq)
	return e, e.note(&Event{Type: TypeGap, Gap: &Gap{Seq: h.Seq, Hash: h.Hash}})
}

// read returns the head and the number of the last record. The head is forged if it was not written with the key, or if
// it is missing although there are records.
func (e *end) read(ctx context.Context, tx *sql.Tx) (h head, last uint64, err error) {
	var public string
	err = tx.QueryRowContext(ctx, "SELECT public, seq, hash, mac, unsigned, (SELECT coalesce(max(seq), 0) FROM audit_record) FROM audit_head WHERE id = 1").
		Scan(&public, &h.Seq, &h.Hash, &h.MAC, &e.unsigned, &last)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM audit_record").Scan(&last)
		h.forged, e.moved = last > 0, true
		return h, last, err
	}
	if err != nil {
		return h, 0, err
	}
	if public != e.key.publicText() {
		return h, 0, fmt.Errorf("the log was started with another key, %s: set audit.key to that, or move the tables "+
			"audit_record and audit_head away to begin a new log", public)
	}
	if e.unsigned < 0 { // the head's MAC does not cover it: somebody wants to prevent checkpoints
		e.unsigned = checkpointEvery
	}
	h.forged = !e.key.wrote(h)
	return h, last, nil
}

// chainEnd returns the end of the chain according to the records.
func chainEnd(ctx context.Context, tx *sql.Tx) (chain, error) {
	var c chain
	var line []byte
	err := tx.QueryRowContext(ctx, "SELECT seq, line FROM audit_record ORDER BY seq DESC LIMIT 1").Scan(&c.seq, &line)
	if errors.Is(err, sql.ErrNoRows) {
		return chain{}, nil
	}
	c.hash = hashOf(line)
	return c, err
}

// add appends a record.
func (e *end) add(at time.Time, body []byte) {
	line := e.chain.line(body)
	e.chain = e.chain.after(line)
	e.seqs = append(e.seqs, int64(e.chain.seq))
	e.times = append(e.times, at.UnixMilli())
	e.lines = append(e.lines, line[:len(line)-1])
	e.unsigned++
	e.moved = true
}

// note appends a record of the log itself.
func (e *end) note(event *Event) error {
	if event.Time.IsZero() {
		event.Time = e.options.Now()
	}
	body, err := event.encode()
	if err != nil {
		return err
	}
	e.add(event.Time, body)
	return nil
}

// sign appends a checkpoint.
func (e *end) sign() error {
	now := e.options.Now()
	if err := e.note(e.key.checkpoint(e.chain, now)); err != nil {
		return err
	}
	e.unsigned, e.signed = 0, now
	return nil
}

// store writes the added records and the head.
func (e *end) store(ctx context.Context, tx *sql.Tx) error {
	if !e.moved {
		return nil
	}
	result, err := tx.ExecContext(ctx, `WITH head AS (
			INSERT INTO audit_head (id, public, seq, hash, mac, unsigned) VALUES (1, $1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, mac = excluded.mac, unsigned = excluded.unsigned)
		INSERT INTO audit_record (seq, time, line) SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::bytea[])`,
		e.key.publicText(), int64(e.chain.seq), e.chain.hash, e.key.authenticate(e.chain.seq, e.chain.hash), e.unsigned,
		e.seqs, e.times, e.lines)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != int64(len(e.lines)) {
		return errors.Join(err,
			fmt.Errorf("the database has kept %d of %d records: look for triggers and rules of the table audit_record",
				n, len(e.lines)))
	}
	return nil
}

// count adds the stored records to s.
func (e *end) count(s *stats) {
	for _, line := range e.lines {
		s.wrote(len(line))
	}
	s.unsigned.Store(int64(e.unsigned))
	if !e.signed.IsZero() {
		s.signed.Store(e.signed.UnixNano())
	}
}

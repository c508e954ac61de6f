package audit

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/hako-run/hako/host/store"
)

// page is how many records are read at once.
const page = 500

// Table is a log in a store.
type Table struct {
	store *store.Store
	key   string

	// between, if not nil, is called between two pages of Verify, in tests.
	between func()
}

var _ Place = (*Table)(nil)

// In is the log in a store that replicas share. The key is Options.Key; without it, Verify cannot tell whether the end
// was cut off.
func In(s *store.Store, key string) *Table { return &Table{store: s, key: key} }

// String names the database.
func (t *Table) String() string { return t.store.Where() }

// Exists reports whether there is a log.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	if err := t.store.Migrate(ctx, "audit", steps...); err != nil {
		return false, err
	}
	rows, err := t.page(ctx, 0, math.MaxInt64, new(Query), false, 1)
	return len(rows) > 0, err
}

// row is a record as the table has it. Its number is the table's word, the line's may be another.
type row struct {
	seq  int64
	line []byte
}

// page returns up to n rows between two numbers, themselves excluded, that may match: oldest first, or newest first.
func (t *Table) page(ctx context.Context, after, before int64, q *Query, newest bool, n int) (rows []row, err error) {
	order := "ASC"
	if newest {
		order = "DESC"
	}
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		until = q.Until.UnixMilli()
	}
	err = t.store.View(ctx, func(tx *sql.Tx) error {
		rows, err = store.Select(ctx, tx, scanRow,
			"SELECT seq, line FROM audit_record WHERE seq > $1 AND seq < $2 AND time BETWEEN $3 AND $4 ORDER BY seq "+
				order+" LIMIT $5",
			after, before, since, until, n)
		return err
	})
	return rows, err
}

func scanRow(rows *sql.Rows) (r row, err error) {
	err = rows.Scan(&r.seq, &r.line)
	return r, err
}

// Read implements Place.
func (t *Table) Read(ctx context.Context, query *Query) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) { t.read(ctx, query, yield) }
}

// read gives the entries that match, and returns the number of the last one that was looked at. It reports whether to
// go on.
func (t *Table) read(ctx context.Context, query *Query, yield func(*Entry, error) bool) (last uint64, more bool) {
	last = query.After
	for {
		rows, err := t.page(ctx, int64(last), upTo(query), query, false, page)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return last, false
		}
		for _, r := range rows {
			entry, err := parseEntry(r.line)
			if err != nil {
				yield(nil, fmt.Errorf("audit: record %d: %w: hako audit verify says more", r.seq, err))
				return last, false
			}
			last = uint64(r.seq)
			if query.matches(entry) && !yield(entry, nil) {
				return last, false
			}
		}
		if len(rows) < page {
			return last, true
		}
	}
}

// upTo is the number that all that the query asks for are before.
func upTo(q *Query) int64 {
	if q.Before == 0 {
		return math.MaxInt64
	}
	return int64(min(q.Before, math.MaxInt64))
}

// Last implements Place.
func (t *Table) Last(ctx context.Context, query *Query, n int) ([]*Entry, error) {
	var last []*Entry
	end := upTo(query)
	for len(last) < n {
		rows, err := t.page(ctx, int64(query.After), end, query, true, page)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		for _, r := range rows {
			entry, err := parseEntry(r.line)
			if err != nil {
				return nil, fmt.Errorf("audit: record %d: %w: hako audit verify says more", r.seq, err)
			}
			end = r.seq
			if query.matches(entry) && len(last) < n {
				last = append(last, entry)
			}
		}
		if len(rows) < page {
			break
		}
	}
	slices.Reverse(last)
	return last, nil
}

// Follow implements Place.
func (t *Table) Follow(ctx context.Context, query *Query, after uint64) iter.Seq2[*Entry, error] {
	wanted := *query
	wanted.After = max(wanted.After, after)
	return func(yield func(*Entry, error) bool) {
		for {
			last, more := t.read(ctx, &wanted, yield)
			if !more {
				return
			}
			wanted.After = last
			select {
			case <-ctx.Done():
				return
			case <-time.After(followPoll):
			}
		}
	}
}

// Verify implements Place. It reads the head first, so that records written meanwhile come after it, and begins again
// if records have gone meanwhile that were too old.
func (t *Table) Verify(ctx context.Context, expect *Expectation) (*Report, error) {
	for {
		report, err := t.verify(ctx, expect)
		if err != nil {
			return nil, fmt.Errorf("verify the audit log in %s: %w", t, err)
		}
		if report != nil {
			return report, nil
		}
	}
}

// verify is one attempt. There is no report if the records are gone that it was at.
func (t *Table) verify(ctx context.Context, expect *Expectation) (*Report, error) {
	v := newVerifier(expect)
	v.name = "audit_head"
	if err := t.store.View(ctx, func(tx *sql.Tx) error { return t.prepare(ctx, tx, v) }); err != nil {
		return nil, err
	}
	v.name, v.report.Segments = "audit_record", 1
	after := int64(math.MinInt64)
	for {
		rows, err := t.page(ctx, after, math.MaxInt64, new(Query), false, page)
		if err != nil {
			return nil, err
		}
		if v.report.Records > 0 && len(rows) > 0 && rows[0].seq > after+1 {
			if gone, err := t.beginsWith(ctx, rows[0].seq); err != nil || gone {
				return nil, err
			}
		}
		for _, r := range rows {
			v.lines++
			v.line(r.line)
			after = r.seq
		}
		if len(rows) < page {
			break
		}
		if t.between != nil {
			t.between()
		}
	}
	v.finish()
	return v.report, nil
}

// beginsWith reports whether that record is the first one there is. One that is gone without a record of that is found
// by another attempt.
func (t *Table) beginsWith(ctx context.Context, seq int64) (bool, error) {
	first, err := t.page(ctx, math.MinInt64, math.MaxInt64, new(Query), false, 1)
	return err == nil && len(first) > 0 && first[0].seq == seq, err
}

// prepare reads the head, and holds it against the key if there is one.
func (t *Table) prepare(ctx context.Context, tx *sql.Tx, v *verifier) error {
	var public string
	var h head
	err := tx.QueryRowContext(ctx, "SELECT public, seq, hash, mac FROM audit_head WHERE id = 1").Scan(&public, &h.Seq,
		&h.Hash, &h.MAC)
	missing := errors.Is(err, sql.ErrNoRows)
	if err != nil && !missing {
		return err
	}
	var k *key
	if t.key != "" {
		if k, err = parseKey(t.key); err != nil {
			return err
		}
	}
	if v.expect.PublicKey, err = expectedKey(v.expect.PublicKey, k, public); err != nil {
		return err
	}
	v.report.PublicKey = v.expect.PublicKey
	switch {
	case k == nil: // signatures have to do
	case !k.public.Equal(v.expect.PublicKey):
		v.problem("the log's key is not the one expected")
	case missing:
		v.report.EndChecked = true
		v.problem("it is missing")
	case !k.wrote(h):
		v.report.EndChecked = true
		v.problem("it was not written with the log's key")
	default:
		v.report.EndChecked = true
		v.head = &h
	}
	return nil
}

// expectedKey is the public key that is asked for, else the private key's, else the one that the database names.
func expectedKey(asked ed25519.PublicKey, k *key, public string) (ed25519.PublicKey, error) {
	switch {
	case asked != nil:
		return asked, nil
	case k != nil:
		return k.public, nil
	}
	return ParsePublicKey(public)
}

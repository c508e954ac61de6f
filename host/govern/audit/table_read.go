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

// page is the number of records per query.
const page = 500

// Table is a log in a store.
type Table struct {
	store *store.Store
	key   string

	// between, if not nil, is called between two pages of Verify.
	between func()
}

var _ Reader = (*Table)(nil)

// NewTable returns the log in a store that replicas share. key is Options.Key. Without it, Verify cannot detect that
// the end was cut off.
func NewTable(s *store.Store, key string) *Table { return &Table{store: s, key: key} }

// String returns the database's name.
func (t *Table) String() string { return t.store.Where() }

// Exists reports whether there is a log.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	if err := t.store.Migrate(ctx, "audit", migrations...); err != nil {
		return false, err
	}
	rows, err := t.page(ctx, 0, math.MaxInt64, new(Query), false, 1)
	return len(rows) > 0, err
}

// row is a row of the table. The number in line may differ from seq.
type row struct {
	seq  int64
	line []byte
}

// page returns up to n rows that may match, with numbers between after and before, both exclusive: oldest first, or
// newest first.
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

// Read implements Reader.
func (t *Table) Read(ctx context.Context, query *Query) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) { t.read(ctx, query, yield) }
}

// read yields the matching entries. It returns the number of the last entry that it read, and whether to continue.
func (t *Table) read(ctx context.Context, query *Query, yield func(*Entry, error) bool) (last uint64, more bool) {
	last = query.After
	for {
		rows, err := t.page(ctx, int64(last), exclusiveEnd(query), query, false, page)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return last, false
		}
		for _, r := range rows {
			entry, err := parseEntry(r.line)
			if err != nil {
				yield(nil, fmt.Errorf("audit: record %d: %w: hako audit verify has the details", r.seq, err))
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

// exclusiveEnd returns the number that all wanted records are below.
func exclusiveEnd(q *Query) int64 {
	if q.Before == 0 {
		return math.MaxInt64
	}
	return int64(min(q.Before, math.MaxInt64))
}

// Last implements Reader.
func (t *Table) Last(ctx context.Context, query *Query, n int) ([]*Entry, error) {
	var last []*Entry
	end := exclusiveEnd(query)
	for len(last) < n {
		rows, err := t.page(ctx, int64(query.After), end, query, true, page)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		for _, r := range rows {
			entry, err := parseEntry(r.line)
			if err != nil {
				return nil, fmt.Errorf("audit: record %d: %w: hako audit verify has the details", r.seq, err)
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

// Follow implements Reader.
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

// Verify implements Reader. It reads the head first, so that records written meanwhile come after it. It starts again
// if expired records were removed meanwhile.
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

// verify is one attempt. The report is nil if the next records were removed meanwhile.
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

// beginsWith reports whether seq is the first record. If records were removed without a note, the next attempt reports
// it.
func (t *Table) beginsWith(ctx context.Context, seq int64) (bool, error) {
	first, err := t.page(ctx, math.MinInt64, math.MaxInt64, new(Query), false, 1)
	return err == nil && len(first) > 0 && first[0].seq == seq, err
}

// prepare reads the head and authenticates it if the key is known.
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
	v.report.PublicKey = formatPublicKey(v.expect.PublicKey)
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

// expectedKey returns the requested public key, else that of the private key, else the one in the database.
func expectedKey(asked ed25519.PublicKey, k *key, public string) (ed25519.PublicKey, error) {
	switch {
	case asked != nil:
		return asked, nil
	case k != nil:
		return k.public, nil
	}
	return parsePublicKey(public)
}

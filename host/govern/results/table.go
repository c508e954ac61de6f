package results

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/sealed"
)

// migrations create the tables. id and owner are digests. head and body are sealed under the ID, which only the caller
// has: who reads the database cannot read a result, and who writes to it cannot give one to another caller. kept and
// expires are microseconds by the database's clock.
var migrations = []string{
	`CREATE TABLE kept_result (id TEXT PRIMARY KEY, owner TEXT NOT NULL, bytes BIGINT NOT NULL, kept BIGINT NOT NULL,
		expires BIGINT NOT NULL, head BYTEA NOT NULL);
	CREATE INDEX kept_result_owner ON kept_result (owner, kept);
	CREATE TABLE kept_result_part (result TEXT NOT NULL REFERENCES kept_result (id) ON DELETE CASCADE,
		number BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (result, number))`,
}

// table keeps documents in the store that replicas share.
type table struct {
	options *Options
	store   *store.Store
}

func newTable(ctx context.Context, s *store.Store, options *Options) (*table, error) {
	if err := s.Migrate(ctx, "results", migrations...); err != nil {
		return nil, err
	}
	return &table{options, s}, nil
}

// head describes a document.
type head struct {
	MIMEType string `json:"mimeType"`
	Parts    []part `json:"parts"`
}

const (
	// partSize is the size of the text in one row, in bytes.
	partSize = 256 << 10
	// maxHead and maxBody bound what is read of one row. No replica writes more.
	maxHead, maxBody = 1 << 20, partSize + 64
)

func digest(kind, text string) string {
	sum := sha256.Sum256([]byte("hako result " + kind + " " + text))
	return hex.EncodeToString(sum[:])
}

func headPlace(owner string) string { return "result of " + owner }

func partPlace(owner string, number int) string {
	return fmt.Sprintf("part %d of a result of %s", number, owner)
}

// add keeps the document in one transaction. Replicas take turns, because each compares the sums of all rows.
func (t *table) add(ctx context.Context, owner string, d *document) (id string, expires time.Time, err error) {
	id = strings.ToLower(rand.Text())
	key, by := digest("ID", id), digest("owner", owner)
	h := head{MIMEType: d.mimeType}
	var bodies [][]byte
	for text := d.text; text != "" || len(bodies) == 0; {
		end := min(partSize, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		h.Parts = append(h.Parts, measure(text[:end], end == len(text)))
		bodies = append(bodies, sealed.Seal(id, partPlace(by, len(bodies)), []byte(text[:end])))
		text = text[end:]
	}
	encoded, err := json.Marshal(h)
	if err != nil {
		return "", time.Time{}, err
	}
	encoded = sealed.Seal(id, headPlace(by), encoded)
	err = t.store.UpdateInTurn(ctx, "kept results", func(tx *sql.Tx) error {
		now, err := t.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		expires = now.Add(t.options.Lifetime)
		if err := t.makeRoom(ctx, tx, now, by, d.size()); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			"INSERT INTO kept_result (id, owner, bytes, kept, expires, head) VALUES ($1, $2, $3, $4, $5, $6)", key, by, d.size(), now.UnixMicro(), expires.UnixMicro(), encoded)
		for i, body := range bodies {
			if err == nil {
				_, err = tx.ExecContext(ctx,
					"INSERT INTO kept_result_part (result, number, body) VALUES ($1, $2, $3)", key, i, body)
			}
		}
		return err
	})
	return id, expires, err
}

// makeRoom deletes what a document of that size does not leave room for: what is expired, the oldest of its owner, and
// then the oldest of the owner who has most.
func (t *table) makeRoom(ctx context.Context, tx *sql.Tx, now time.Time, owner string, size int64) error {
	if err := deleteExpired(ctx, tx, now); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM kept_result WHERE id IN (SELECT id FROM (
		SELECT id, SUM(bytes) OVER (ORDER BY kept DESC, id) AS newer FROM kept_result WHERE owner = $1) AS own
		WHERE newer > $2)`,
		owner, t.options.PerCaller-size)
	for err == nil {
		var sum, most int64
		var largest string
		err = tx.QueryRowContext(ctx, `SELECT owner, CAST(SUM(bytes) AS BIGINT), CAST(SUM(SUM(bytes)) OVER () AS BIGINT)
			FROM kept_result GROUP BY owner ORDER BY 2 DESC, 1 LIMIT 1`).Scan(&largest, &most, &sum)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		excess := sum + size - t.options.Total
		if err != nil || excess <= 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM kept_result WHERE id IN (SELECT id FROM (
			SELECT id, SUM(bytes) OVER (ORDER BY kept, id) - bytes AS older FROM kept_result WHERE owner = $1) AS largest
			WHERE older < $2)`,
			largest, excess)
	}
	return err
}

func deleteExpired(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM kept_result WHERE expires <= $1", now.UnixMicro())
	return err
}

func (t *table) find(ctx context.Context, owner, id string) (*stored, error) {
	key, by := digest("ID", id), digest("owner", owner)
	var encoded []byte
	err := t.store.View(ctx, func(tx *sql.Tx) error {
		now, err := t.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT head FROM kept_result
			WHERE id = $1 AND owner = $2 AND expires > $3 AND length(head) <= $4`,
			key, by, now.UnixMicro(), maxHead).Scan(&encoded)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	opened, err := sealed.Open(id, headPlace(by), encoded)
	if err != nil {
		return nil, errGone // another process has changed the row
	}
	var h head
	if err := json.Unmarshal(opened, &h); err != nil {
		return nil, err
	}
	return &stored{h.MIMEType, h.Parts, func(ctx context.Context, from, to int) (string, error) {
		return t.load(ctx, id, by, from, to)
	}}, nil
}

// load returns the text of some parts of a document, or errGone if it has been deleted in the meantime.
func (t *table) load(ctx context.Context, id, owner string, from, to int) (string, error) {
	bodies, err := store.List(ctx, t.store, store.Column[[]byte], `SELECT body FROM kept_result_part
		WHERE result = $1 AND number >= $2 AND number < $3 AND length(body) <= $4 ORDER BY number`,
		digest("ID", id), from, to, maxBody)
	if err != nil {
		return "", err
	}
	if len(bodies) != to-from {
		return "", errGone
	}
	var b strings.Builder
	for i, body := range bodies {
		opened, err := sealed.Open(id, partPlace(owner, from+i), body)
		if err != nil {
			return "", errGone // another process has changed the row
		}
		b.Write(opened)
	}
	return b.String(), nil
}

func (t *table) size(ctx context.Context) (count int, bytes int64, err error) {
	err = t.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM kept_result").
			Scan(&count, &bytes)
	})
	return count, bytes, err
}

func (t *table) forget(ctx context.Context) error {
	return t.store.UpdateInTurn(ctx, "kept results", func(tx *sql.Tx) error {
		now, err := t.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		return deleteExpired(ctx, tx, now)
	})
}

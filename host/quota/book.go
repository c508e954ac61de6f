package quota

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Book is a Ledger in the host's store.
type Book struct{ store *store.Store }

// NewBook returns the ledger in s, whose tables it makes. Errors are the store's.
func NewBook(ctx context.Context, s *store.Store) (*Book, error) {
	const table = `CREATE TABLE quota_use (day TEXT NOT NULL, owner TEXT NOT NULL, nanoseconds BIGINT NOT NULL, PRIMARY KEY (day, owner))`
	if err := s.Migrate(ctx, "quota", table); err != nil {
		return nil, err
	}
	return &Book{s}, nil
}

// Add adds to what key has used on day, and returns the sum. Days before the last one are forgotten. Errors are the store's.
func (b *Book) Add(ctx context.Context, day, key string, used time.Duration) (sum time.Duration, err error) {
	const add = `INSERT INTO quota_use (day, owner, nanoseconds) VALUES ($1, $2, $3)
		ON CONFLICT (day, owner) DO UPDATE SET nanoseconds = quota_use.nanoseconds + excluded.nanoseconds RETURNING nanoseconds`
	if used == 0 {
		return b.sum(ctx, day, key)
	}
	err = b.store.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM quota_use WHERE day < $1", yesterday(day)); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, add, day, key, int64(used)).Scan((*int64)(&sum))
	})
	return sum, err
}

// sum reads what key has used, which takes no turn at writing.
func (b *Book) sum(ctx context.Context, day, key string) (sum time.Duration, err error) {
	err = b.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT nanoseconds FROM quota_use WHERE day = $1 AND owner = $2", day, key).Scan((*int64)(&sum))
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return sum, err
}

func yesterday(day string) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "" // no day is before it
	}
	return t.AddDate(0, 0, -1).Format(time.DateOnly)
}

var _ Ledger = (*Book)(nil)

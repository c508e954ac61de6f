package quota

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Store implements Ledger and Pool in the host's store. It is safe for concurrent use.
type Store struct{ store *store.Store }

// NewStore returns a Store in s and creates its tables. Errors are the store's.
func NewStore(ctx context.Context, s *store.Store) (*Store, error) {
	const table = `CREATE TABLE quota_use (day TEXT NOT NULL, owner TEXT NOT NULL, nanoseconds BIGINT NOT NULL, PRIMARY KEY (day, owner))`
	if err := s.Migrate(ctx, "quota", table, poolTables); err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Add adds used to the use of key on day, and returns the sum. Errors are the store's.
func (s *Store) Add(ctx context.Context, day, key string, used time.Duration) (sum time.Duration, err error) {
	const add = `INSERT INTO quota_use (day, owner, nanoseconds) VALUES ($1, $2, $3)
		ON CONFLICT (day, owner) DO UPDATE SET nanoseconds = quota_use.nanoseconds + excluded.nanoseconds RETURNING nanoseconds`
	if used == 0 {
		return s.usedOn(ctx, day, key)
	}
	err = s.store.Update(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, add, day, key, int64(used)).Scan((*int64)(&sum))
	})
	return sum, err
}

// usedOn returns the use of key on day without a write transaction.
func (s *Store) usedOn(ctx context.Context, day, key string) (sum time.Duration, err error) {
	err = s.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT nanoseconds FROM quota_use WHERE day = $1 AND owner = $2", day,
			key).Scan((*int64)(&sum))
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return sum, err
}

// retention is the time for which unused counters are kept. A day exceeds 24 hours if the clocks of replicas have
// different time zones.
const retention = 48 * time.Hour

// Forget deletes counters older than retention. One of the replicas should call it regularly. Errors are the store's.
func (s *Store) Forget(ctx context.Context) error {
	return s.store.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		before := now.Add(-retention)
		_, err = tx.ExecContext(ctx, "DELETE FROM quota_use WHERE day < $1", before.Format(time.DateOnly))
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM quota_bucket WHERE at < $1", before.UnixMilli())
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM quota_slot WHERE until < $1", before.UnixMilli())
		}
		return err
	})
}

var _ Ledger = (*Store)(nil)

package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

// prepare makes the table that the migrations are kept in, where it is missing. A store that is there is only read: it can be opened
// while another process writes.
func (s *Store) prepare(ctx context.Context) error {
	const table = `CREATE TABLE IF NOT EXISTS migration (
		consumer TEXT NOT NULL, step BIGINT NOT NULL, checksum TEXT NOT NULL, applied BIGINT NOT NULL, PRIMARY KEY (consumer, step))`
	err := s.View(ctx, func(tx *sql.Tx) error {
		_, err := appliedSteps(ctx, tx, "")
		return err
	})
	if err == nil {
		return nil
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, table)
		return err
	})
}

// Migrate brings the tables of one consumer up to date: steps are SQL, each applied once and in order, and all together or none. A
// step must never change once it has been released; new ones are appended.
//
// An error matches ErrNewer if the store has more steps than these. One whose step is not what was applied names it.
func (s *Store) Migrate(ctx context.Context, consumer string, steps ...string) error {
	missing := 0
	err := s.View(ctx, func(tx *sql.Tx) (err error) {
		missing, err = s.missing(ctx, tx, consumer, steps)
		return err
	})
	if err != nil || missing == 0 {
		return err
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		missing, err := s.missing(ctx, tx, consumer, steps) // another process may have been faster
		if err != nil {
			return err
		}
		for i := len(steps) - missing; i < len(steps); i++ {
			if err := apply(ctx, tx, consumer, i+1, steps[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// missing is how many of the last steps have not been applied. Those that have are compared.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, consumer string, steps []string) (int, error) {
	applied, err := appliedSteps(ctx, tx, consumer)
	if err != nil {
		return 0, err
	}
	return len(steps) - len(applied), s.compare(consumer, applied, steps)
}

// appliedSteps returns the checksums of what was applied, in order.
func appliedSteps(ctx context.Context, tx *sql.Tx, consumer string) (sums []string, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT checksum FROM migration WHERE consumer = $1 ORDER BY step", consumer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var sum string
		if err := rows.Scan(&sum); err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, rows.Err()
}

func (s *Store) compare(consumer string, applied, steps []string) error {
	if len(applied) > len(steps) {
		return fmt.Errorf("store %s: %w: its %s are at step %d, and this hako knows %d: run the newer one, or restore a backup from before it",
			s.path(), ErrNewer, consumer, len(applied), len(steps))
	}
	for i, sum := range applied {
		if sum != checksum(steps[i]) {
			return fmt.Errorf("store %s: step %d of its %s is not the one that was applied: another build of hako made it, so run that one",
				s.path(), i+1, consumer)
		}
	}
	return nil
}

func apply(ctx context.Context, tx *sql.Tx, consumer string, number int, step string) error {
	if _, err := tx.ExecContext(ctx, step); err != nil {
		return fmt.Errorf("step %d of %s: %w", number, consumer, err)
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO migration (consumer, step, checksum, applied) VALUES ($1, $2, $3, $4)",
		consumer, number, checksum(step), time.Now().Unix())
	return err
}

func checksum(step string) string {
	sum := sha256.Sum256([]byte(step))
	return hex.EncodeToString(sum[:])
}

package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// migrationTables create the tables that record the applied migrations, and which of them were additive.
var migrationTables = []string{
	`CREATE TABLE IF NOT EXISTS migration (
		consumer TEXT NOT NULL, step BIGINT NOT NULL, checksum TEXT NOT NULL, applied BIGINT NOT NULL, PRIMARY KEY (consumer, step))`,
	`CREATE TABLE IF NOT EXISTS migration_additive (consumer TEXT NOT NULL, step BIGINT NOT NULL, PRIMARY KEY (consumer, step))`,
}

// migrations create the store's own tables.
var migrations = []string{
	`CREATE TABLE replica (id TEXT PRIMARY KEY, host TEXT NOT NULL, version TEXT NOT NULL, started BIGINT NOT NULL, seen BIGINT NOT NULL)`,
}

// prepare creates the store's own tables if they are missing, unless the store is opened with ReadOnly. It only reads
// an existing store, so a store can be opened while another process writes.
func (s *Store) prepare(ctx context.Context) error {
	if s.readOnly {
		var table sql.NullString
		err := s.View(ctx, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT to_regclass('migration_additive')::text").Scan(&table)
		})
		s.unprepared = !table.Valid
		if err == nil && table.Valid {
			err = s.Migrate(ctx, "store", migrations...)
		}
		if errors.Is(err, ErrUnprepared) {
			s.unprepared, err = true, nil
		}
		return err
	}
	err := s.View(ctx, func(tx *sql.Tx) error {
		_, err := appliedSteps(ctx, tx, "")
		return err
	})
	if err != nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrCorrupt) { // the tables are missing
		err = s.engine.Explain(s.engine.Migrate(ctx, func(tx *sql.Tx) error {
			for _, table := range migrationTables {
				if _, err := tx.ExecContext(ctx, table); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if err != nil {
		return err
	}
	return s.Migrate(ctx, "store", migrations...)
}

// Migrate applies the missing migrations of one consumer in order, all or none of them, safely for concurrent
// processes. steps are SQL. A released step must never change; new ones are appended.
//
// Two versions of a program may use one store during an update: a store with more steps is accepted if the additional
// ones are additive. Additive statements are CREATE TABLE, CREATE INDEX, and ALTER TABLE ... ADD COLUMN of a column
// that may be omitted. A step with any other statement is incompatible with older programs.
//
// The error matches ErrNewer if the store has more steps and one of them is not additive. It names a step that differs
// from the applied one.
func (s *Store) Migrate(ctx context.Context, consumer string, steps ...string) error {
	if s.unprepared {
		return fmt.Errorf("store %s: %w", s.engine.Name(), ErrUnprepared)
	}
	missing := 0
	err := s.View(ctx, func(tx *sql.Tx) (err error) {
		missing, err = s.countMissing(ctx, tx, consumer, steps)
		return err
	})
	if err != nil || missing == 0 {
		return err
	}
	if s.readOnly {
		return fmt.Errorf("store %s: %w: its %s lack %d steps", s.engine.Name(), ErrUnprepared, consumer, missing)
	}
	return s.engine.Explain(s.engine.Migrate(ctx, func(tx *sql.Tx) error {
		missing, err := s.countMissing(ctx, tx, consumer, steps) // another process may have applied them
		if err != nil {
			return err
		}
		for i := len(steps) - missing; i < len(steps); i++ {
			if err := apply(ctx, tx, consumer, i+1, steps[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// countMissing returns the number of steps that have not been applied. It compares the others with the applied ones.
func (s *Store) countMissing(ctx context.Context, tx *sql.Tx, consumer string, steps []string) (int, error) {
	applied, err := appliedSteps(ctx, tx, consumer)
	if err != nil {
		return 0, err
	}
	return max(0, len(steps)-len(applied)), s.compare(consumer, applied, steps)
}

// appliedStep is a recorded migration.
type appliedStep struct {
	checksum string
	// breaking steps may stop older programs from working during a rolling update.
	breaking bool
}

// maxSteps limits the migrations that are read. No consumer has as many, but somebody may have changed the table.
const maxSteps = 1000

// appliedSteps returns the first recorded migrations in order.
func appliedSteps(ctx context.Context, tx *sql.Tx, consumer string) ([]appliedStep, error) {
	return Select(ctx, tx, scanStep, `SELECT m.checksum, CASE WHEN a.step IS NULL THEN 1 ELSE 0 END
		FROM migration m LEFT JOIN migration_additive a ON a.consumer = m.consumer AND a.step = m.step
		WHERE m.consumer = $1 ORDER BY m.step LIMIT $2`, consumer, maxSteps)
}

func scanStep(rows *sql.Rows) (step appliedStep, err error) {
	var breaking int
	err = rows.Scan(&step.checksum, &breaking)
	step.breaking = breaking == 1
	return step, err
}

func (s *Store) compare(consumer string, applied []appliedStep, steps []string) error {
	for i, step := range applied {
		switch {
		case i < len(steps) && step.checksum != checksum(steps[i]):
			return fmt.Errorf("store %s: step %d of its %s differs from the applied one: another build of hako "+
				"migrated the store, so run that one",
				s.engine.Name(), i+1, consumer)
		case i >= len(steps) && step.breaking:
			return fmt.Errorf("store %s: %w: its %s are at step %d, and this hako knows %d: run the newer hako, or "+
				"restore a backup from before the update",
				s.engine.Name(), ErrNewer, consumer, len(applied), len(steps))
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
	if err != nil || !additive(step) {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO migration_additive (consumer, step) VALUES ($1, $2)", consumer, number)
	return err
}

func checksum(step string) string {
	sum := sha256.Sum256([]byte(step))
	return hex.EncodeToString(sum[:])
}

var (
	adding   = lazyregexp.New(`(?is)^\s*(CREATE\s+TABLE|CREATE\s+INDEX|ALTER\s+TABLE\s+\w+\s+ADD\s+COLUMN\s+[^,]*)`)
	column   = lazyregexp.New(`(?is)^\s*ALTER\s`)
	rule     = lazyregexp.New(`(?is)\b(UNIQUE|CHECK|REFERENCES|PRIMARY)\b`)
	demand   = lazyregexp.New(`(?is)\bNOT\s+NULL\b`)
	fallback = lazyregexp.New(`(?is)\bDEFAULT\b`)
)

// additive reports whether older programs work after a step. If in doubt, it reports false.
func additive(step string) bool {
	for statement := range strings.SplitSeq(step, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		whole := adding().FindString(statement)
		if whole == "" {
			return false
		}
		if !column().MatchString(statement) {
			continue
		}
		if whole != statement || rule().MatchString(statement) || demand().MatchString(statement) &&
			!fallback().MatchString(statement) {
			return false
		}
	}
	return true
}

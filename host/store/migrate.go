package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// bookkeeping are the tables that migrations are kept in: those that were applied, and which of them only added something.
var bookkeeping = []string{
	`CREATE TABLE IF NOT EXISTS migration (
		consumer TEXT NOT NULL, step BIGINT NOT NULL, checksum TEXT NOT NULL, applied BIGINT NOT NULL, PRIMARY KEY (consumer, step))`,
	`CREATE TABLE IF NOT EXISTS migration_additive (consumer TEXT NOT NULL, step BIGINT NOT NULL, PRIMARY KEY (consumer, step))`,
}

// own are the steps of the store's own tables.
var own = []string{
	`CREATE TABLE replica (id TEXT PRIMARY KEY, host TEXT NOT NULL, version TEXT NOT NULL, started BIGINT NOT NULL, seen BIGINT NOT NULL)`,
}

// prepare makes the store's own tables, where they are missing. A store that is there is only read: it can be opened while another
// process writes.
func (s *Store) prepare(ctx context.Context) error {
	err := s.View(ctx, func(tx *sql.Tx) error {
		_, err := appliedSteps(ctx, tx, "")
		return err
	})
	if err != nil {
		err = s.explain(s.migrate(ctx, func(tx *sql.Tx) error {
			for _, table := range bookkeeping {
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
	return s.Migrate(ctx, "store", own...)
}

// Migrate brings the tables of one consumer up to date: steps are SQL, each applied once and in order, and all together or none, whatever
// other processes do at the same time. A step must never change once it has been released; new ones are appended.
//
// Two versions of a program may run over one store while the newer one replaces the older: a store that has more steps than these is as good
// as one that has the same if the steps beyond are additive. Those are statements CREATE TABLE, CREATE INDEX, and ALTER TABLE ... ADD
// COLUMN whose column may be left out; any other statement makes its step one that older programs cannot live with.
//
// An error matches ErrNewer if the store has more steps than these, and one beyond is not additive. One whose step is not what was applied
// names it.
func (s *Store) Migrate(ctx context.Context, consumer string, steps ...string) error {
	missing := 0
	err := s.View(ctx, func(tx *sql.Tx) (err error) {
		missing, err = s.missing(ctx, tx, consumer, steps)
		return err
	})
	if err != nil || missing == 0 {
		return err
	}
	return s.explain(s.migrate(ctx, func(tx *sql.Tx) error {
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
	}))
}

// missing is how many of the last steps have not been applied. Those that have are compared.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, consumer string, steps []string) (int, error) {
	applied, err := appliedSteps(ctx, tx, consumer)
	if err != nil {
		return 0, err
	}
	return max(0, len(steps)-len(applied)), s.compare(consumer, applied, steps)
}

// appliedStep is one that the store has.
type appliedStep struct {
	checksum string
	breaking bool // not additive
}

// appliedSteps returns what was applied, in order.
func appliedSteps(ctx context.Context, tx *sql.Tx, consumer string) ([]appliedStep, error) {
	return Select(ctx, tx, scanStep, `SELECT m.checksum, CASE WHEN a.step IS NULL THEN 1 ELSE 0 END
		FROM migration m LEFT JOIN migration_additive a ON a.consumer = m.consumer AND a.step = m.step
		WHERE m.consumer = $1 ORDER BY m.step`, consumer)
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
			return fmt.Errorf("store %s: step %d of its %s is not the one that was applied: another build of hako made it, so run that one",
				s.name(), i+1, consumer)
		case i >= len(steps) && step.breaking:
			return fmt.Errorf("store %s: %w: its %s are at step %d, and this hako knows %d: run the newer one, or restore a backup from before it",
				s.name(), ErrNewer, consumer, len(applied), len(steps))
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
	adding   = regexp.MustCompile(`(?is)^\s*(CREATE\s+TABLE|CREATE\s+INDEX|ALTER\s+TABLE\s+\w+\s+ADD\s+COLUMN\s+[^,]*)`)
	column   = regexp.MustCompile(`(?is)^\s*ALTER\s`)
	rule     = regexp.MustCompile(`(?is)\b(UNIQUE|CHECK|REFERENCES|PRIMARY)\b`)
	demand   = regexp.MustCompile(`(?is)\bNOT\s+NULL\b`)
	fallback = regexp.MustCompile(`(?is)\bDEFAULT\b`)
)

// additive reports whether an older program can go on beside what a step has made. A doubt is a no.
func additive(step string) bool {
	for statement := range strings.SplitSeq(step, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		whole := adding.FindString(statement)
		if whole == "" {
			return false
		}
		if !column.MatchString(statement) {
			continue
		}
		if whole != statement || rule.MatchString(statement) || demand.MatchString(statement) && !fallback.MatchString(statement) {
			return false
		}
	}
	return true
}

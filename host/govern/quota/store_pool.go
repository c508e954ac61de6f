package quota

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// poolTables are the tables of a Pool. quota_bucket has the remaining calls of a rate as of a time in milliseconds;
// quota_slot has the concurrent calls of each replica until a time.
const poolTables = `CREATE TABLE quota_bucket (owner TEXT PRIMARY KEY, tokens DOUBLE PRECISION NOT NULL, at BIGINT NOT NULL);
	CREATE TABLE quota_slot (owner TEXT NOT NULL, replica TEXT NOT NULL, held BIGINT NOT NULL, until BIGINT NOT NULL, PRIMARY KEY (owner, replica))`

// slotTime is the time for which a replica keeps its slots without calling Slots again.
const slotTime = 30 * time.Second

// Tokens implements Pool. It uses the clock of the store: those of replicas may differ.
func (s *Store) Tokens(ctx context.Context, key string, rule *Rule, n int) (taken int, wait time.Duration, err error) {
	err = s.store.UpdateInTurn(ctx, "quota "+key, func(tx *sql.Tx) error {
		now, err := s.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		left, err := bucketTokens(ctx, tx, key, rule, now)
		if err != nil {
			return err
		}
		taken, wait = min(n, int(left)), 0
		if taken == 0 {
			wait = time.Duration((1 - left) / perSecond(rule) * float64(time.Second))
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO quota_bucket (owner, tokens, at) VALUES ($1, $2, $3)
			ON CONFLICT (owner) DO UPDATE SET tokens = excluded.tokens, at = excluded.at`, key, left-float64(taken),
			now.UnixMilli())
		return err
	})
	return taken, wait, err
}

func perSecond(r *Rule) float64 { return float64(r.Rate) / 60 }

// bucketTokens returns the remaining calls, between none and the size of the bucket whatever the table contains. A
// clock that went back adds nothing.
func bucketTokens(ctx context.Context, tx *sql.Tx, key string, rule *Rule, now time.Time) (left float64, err error) {
	most := float64(cmp.Or(rule.Burst, rule.Rate))
	var at int64
	err = tx.QueryRowContext(ctx, "SELECT tokens, at FROM quota_bucket WHERE owner = $1", key).Scan(&left, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return most, nil
	}
	if !(left >= 0) { // also NaN
		left = 0
	}
	passed := math.Max(0, float64(now.UnixMilli())-float64(at)) / 1000
	return math.Min(most, left+passed*perSecond(rule)), err
}

// Slots implements Pool.
func (s *Store) Slots(ctx context.Context, key string, rule *Rule, n int) (have int, err error) {
	err = s.store.UpdateInTurn(ctx, "quota "+key, func(tx *sql.Tx) error {
		now, err := s.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		var others int
		err = tx.QueryRowContext(ctx, "SELECT coalesce(sum(held), 0) FROM quota_slot "+
			"WHERE owner = $1 AND replica <> $2 AND until > $3 AND held > 0",
			key, s.store.Replica(), now.UnixMilli()).Scan(&others)
		if err != nil {
			return err
		}
		have = max(0, min(n, rule.Concurrent-others))
		if have == 0 {
			_, err := tx.ExecContext(ctx, "DELETE FROM quota_slot WHERE owner = $1 AND replica = $2", key,
				s.store.Replica())
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO quota_slot (owner, replica, held, until) VALUES ($1, $2, $3, $4)
			ON CONFLICT (owner, replica) DO UPDATE SET held = excluded.held, until = excluded.until`, key,
			s.store.Replica(), have, now.Add(slotTime).UnixMilli())
		return err
	})
	return have, err
}

var _ Pool = (*Store)(nil)

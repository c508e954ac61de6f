package approval

import (
	"context"
	"database/sql"
	"time"
)

// HeartbeatTTL is the validity of a Heartbeat.
const HeartbeatTTL = 10 * time.Second

// Heartbeat records, for all processes on the store, that the operator id watches for questions. It has to be repeated
// within HeartbeatTTL. Operators who do not watch are not asked: a refusal that names the remedy is better than a
// question that nobody sees until it expires. Errors are the store's.
func (d *Queue) Heartbeat(ctx context.Context, id string) error {
	now := d.options.Now().UnixMilli()
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM approval_watch WHERE seen <= $1`,
			now-HeartbeatTTL.Milliseconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			`INSERT INTO approval_watch (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen`,
			id, now)
		return err
	})
}

// RemoveWatcher undoes Heartbeat. Errors are the store's.
func (d *Queue) RemoveWatcher(ctx context.Context, id string) error {
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM approval_watch WHERE id = $1`, id)
		return err
	})
}

// operatorsWatch reports whether an operator watches.
func (d *Queue) operatorsWatch(ctx context.Context) (bool, error) {
	n := 0
	err := d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM approval_watch WHERE seen > $1`,
			d.options.Now().UnixMilli()-HeartbeatTTL.Milliseconds()).Scan(&n)
	})
	return n > 0, err
}

package approval

import (
	"context"
	"database/sql"
	"time"
)

// Presence is for how long Attend counts.
const Presence = 10 * time.Second

// Attend says that somebody who may answer any question looks at them now, id: for Presence, to all processes over the store. Whoever watches
// calls it again before that. Errors are the store's.
func (d *Desk) Attend(ctx context.Context, id string) error {
	now := d.options.Now().UnixMilli()
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM approval_watch WHERE seen <= $1`, now-Presence.Milliseconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO approval_watch (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen`, id, now)
		return err
	})
}

// Leave takes back what Attend said. Errors are the store's.
func (d *Desk) Leave(ctx context.Context, id string) error {
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM approval_watch WHERE id = $1`, id)
		return err
	})
}

// attended reports whether somebody attends.
func (d *Desk) attended(ctx context.Context) (bool, error) {
	n := 0
	err := d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM approval_watch WHERE seen > $1`, d.options.Now().UnixMilli()-Presence.Milliseconds()).Scan(&n)
	})
	return n > 0, err
}

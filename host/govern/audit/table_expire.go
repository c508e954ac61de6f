package audit

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
)

// removedAtOnce is the number of records removed in one turn, for which all replicas wait.
const removedAtOnce = 5000

// expire removes expired records, in batches of at least a tenth of Options.Retain, and records that, because Verify
// begins with what is left. It removes them in the order of the log: none is removed before an earlier one.
func (t *table) expire(ctx context.Context) error {
	retain := t.options.Retain
	if retain == 0 {
		return nil
	}
	tooOld := t.options.Now().Add(-retain)
	for begin := tooOld.Add(-retain / 10); ; begin = tooOld {
		if n, err := t.removeSome(ctx, begin, tooOld); err != nil || n < removedAtOnce {
			return err
		}
	}
}

// stamp is a record without its line.
type stamp struct{ seq, time int64 }

func scanStamp(rows *sql.Rows) (s stamp, err error) {
	err = rows.Scan(&s.seq, &s.time)
	return s, err
}

// removeSome removes the oldest records if the first one is older than begin: those before the first record that is not
// older than tooOld, but never the last record, to which the next one is chained. It returns their number.
func (t *table) removeSome(ctx context.Context, begin, tooOld time.Time) (n int, err error) {
	err = t.options.Store.UpdateInTurn(ctx, turn, func(tx *sql.Tx) error {
		n = 0
		oldest, err := store.Select(ctx, tx, scanStamp, "SELECT seq, time FROM audit_record ORDER BY seq LIMIT $1",
			removedAtOnce+1)
		if err != nil || len(oldest) == 0 || oldest[0].time > begin.UnixMilli() {
			return err
		}
		for n < len(oldest)-1 && oldest[n].time < tooOld.UnixMilli() {
			n++
		}
		if n == 0 {
			return nil
		}
		return t.remove(ctx, tx, oldest[0].seq, oldest[n-1].seq)
	})
	return n, err
}

// remove removes the records up to last.
func (t *table) remove(ctx context.Context, tx *sql.Tx, first, last int64) error {
	e, err := t.end(ctx, tx)
	if err != nil {
		return err
	}
	var line []byte
	if err := tx.QueryRowContext(ctx, "SELECT line FROM audit_record WHERE seq = $1", last).Scan(&line); err != nil {
		return err
	}
	removed := &Removed{Segment: fmt.Sprintf("records %d to %d", first, last), Seq: uint64(last), Hash: hashOf(line)}
	if err := e.note(&Event{Type: TypeRemoved, Removed: removed}); err != nil {
		return err
	}
	if err := e.store(ctx, tx); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM audit_record WHERE seq <= $1", last)
	return err
}

package console

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"time"
)

const (
	// saveEvery is the interval at which counts are stored. A killed process loses later counts.
	saveEvery = time.Minute
	// saveOften is the minimum interval if somebody looks at the counts.
	saveOften = 10 * time.Second
	// tidyEvery is the interval at which expired counts are deleted.
	tidyEvery = time.Hour
	// lastSave bounds the last save when hako ends.
	lastSave = 5 * time.Second
)

// history stores counts of calls: for each name, step and process a row of at most 150 bytes. A process overwrites only
// its own rows, with all counts of the step, so it may write twice if the result of a write is unknown. The zero value
// is ready.
type history struct {
	mu sync.Mutex
	// saved and tidied are the times of the last save and deletion. mu guards them.
	saved, tidied time.Time
}

// save stores the new counts if the last save is older than since.
func (c *Console) save(ctx context.Context, since time.Duration) error {
	h := &c.history
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.saved) < since {
		return nil
	}
	h.saved = now
	list := c.options.Traffic.take()
	tidy := now.Sub(h.tidied) >= tidyEvery
	if len(list) == 0 && !tidy {
		return nil
	}
	err := c.options.Store.Update(ctx, func(tx *sql.Tx) error {
		for i := range list {
			if err := list[i].write(ctx, tx, c.options.Store.Replica()); err != nil {
				return err
			}
		}
		if !tidy {
			return nil
		}
		return errors.Join(forgetBefore(ctx, tx, c.options.Traffic.now()), c.forgetShared(ctx, tx))
	})
	if err != nil {
		c.options.Traffic.giveBack(list)
		return err
	}
	if tidy {
		h.tidied = now
	}
	return nil
}

// keepSaving saves once a minute until ctx ends, and then once more.
func (c *Console) keepSaving(ctx context.Context) {
	ticker := time.NewTicker(saveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := c.save(ctx, 0); err != nil && ctx.Err() == nil {
				c.logger.Warn("store the console's counts", "err", err) // the next save may succeed
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
			defer cancel()
			if err := c.save(last, 0); err != nil {
				c.logger.Warn("the console's counts of the last minute are lost", "err", err)
			}
			return
		}
	}
}

func (t *tally) write(ctx context.Context, tx *sql.Tx, replica string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO console_traffic (span, tool, number, replica, plugin, calls, failures,
			durations) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (span, tool, number, replica) DO UPDATE SET plugin = excluded.plugin, calls = excluded.calls,
			failures = excluded.failures, durations = excluded.durations`,
		t.span, t.tool, t.number, replica, t.plugin, int64(t.calls), int64(t.failures), encodeDurations(&t.point))
	return err
}

// forgetBefore deletes counts that no chart shows any more.
func forgetBefore(ctx context.Context, tx *sql.Tx, now time.Time) error {
	for _, span := range saved {
		if _, err := tx.ExecContext(ctx, `DELETE FROM console_traffic WHERE span = $1 AND number < $2`, span.name,
			span.first(now)); err != nil {
			return err
		}
	}
	return nil
}

// read passes the rows of a span to each, in no order: those of all processes, of the tools that where selects by $3.
// begin returns each, and is called again if the store retries.
func (c *Console) read(ctx context.Context, span span, where, tool string, begin func() (each func(*tally))) error {
	if err := c.save(ctx, saveOften); err != nil {
		c.logger.Warn("store the console's counts", "err", err) // the stored counts can still be shown
	}
	return c.options.Store.View(ctx, func(tx *sql.Tx) error {
		each := begin()
		rows, err := tx.QueryContext(ctx,
			`SELECT tool, plugin, number, calls, failures, durations FROM console_traffic
			WHERE span = $1 AND number >= $2 AND length(tool) + length(plugin) <= 1000 AND length(durations) <= 1000
			AND `+where,
			span.name, span.first(c.options.Traffic.now()), tool)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if t := scanTally(rows); t != nil {
				each(t)
			}
		}
		return rows.Err()
	})
}

// scanTally returns nil for a damaged row, which must not hide the others.
func scanTally(rows *sql.Rows) *tally {
	t := new(tally)
	var durations []byte
	err := rows.Scan(&t.tool, &t.plugin, &t.number, &t.calls, &t.failures, &durations)
	if err != nil || decodeDurations(durations, &t.point) != nil {
		return nil
	}
	return t
}

// encodeDurations encodes the counts as unsigned varints, because most are small, and after them the longest duration in
// microseconds.
func encodeDurations(p *point) []byte {
	data := make([]byte, 0, buckets+4)
	for _, n := range p.durations {
		data = binary.AppendUvarint(data, uint64(n))
	}
	return binary.AppendUvarint(data, uint64(p.slowest.Microseconds()))
}

// decodeDurations reads what encodeDurations returned. Rows of earlier versions end after the counts.
func decodeDurations(data []byte, p *point) error {
	for i := range p.durations {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > math.MaxUint32 {
			return errDurations
		}
		p.durations[i], data = uint32(n), data[size:]
	}
	if n, size := binary.Uvarint(data); size > 0 && n <= uint64(math.MaxInt64/time.Microsecond) {
		p.slowest = time.Duration(n) * time.Microsecond
	}
	return nil
}

var errDurations = errors.New("the counts of calls in the store are invalid")

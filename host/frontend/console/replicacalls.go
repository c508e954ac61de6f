package console

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Running calls of other replicas: each replica stores a list of its calls that have run for a while, and stores it
// again when it changes. A call is stopped at another replica with a row in console_stop, which that replica reads.

const (
	// shareEvery is the interval at which the list is stored, shareAfter the age from which on a call is on it. Most
	// calls end before and cost nothing.
	shareEvery, shareAfter = 2 * time.Second, time.Second
	// shareAgain is the interval at which an unchanged list is stored, shareOld the age of lists and of rows in
	// console_stop that are deleted.
	shareAgain, shareOld = time.Minute, time.Hour
	// maxShared bounds the calls on a list. maxSharedText bounds the list, in characters: a call has at most 10,000,
	// with the names that its client and its user gave themselves.
	maxShared, maxSharedText = 100, 1 << 20
)

// stopTopic is the topic of change notifications for console_stop.
const stopTopic = "console stops"

// sharedCalls are the calls that this replica has stored.
type sharedCalls struct {
	text   string
	stored time.Time
}

// shareRunning shares the running calls and stops those that are to be stopped until ctx ends.
func (c *Console) shareRunning(ctx context.Context) {
	ticker := time.NewTicker(shareEvery)
	defer ticker.Stop()
	stops := c.options.Store.Changes(ctx, stopTopic)
	var shared sharedCalls
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-stops:
			err = c.stopRequested(ctx)
		case <-ticker.C:
			err = c.share(ctx, &shared, shareAfter)
		}
		if err != nil && ctx.Err() == nil {
			c.logger.Warn("share running calls with other replicas", "err", err) // the next attempt may succeed
		}
	}
}

// share stores the calls that have run for the time after, unless the list is stored already.
func (c *Console) share(ctx context.Context, last *sharedCalls, after time.Duration) error {
	s := c.options.Store
	now, list := s.Time(), runningListJSON{}
	for _, r := range c.options.Traffic.runningCalls() {
		age := time.Since(r.Started)
		if age < after {
			continue
		}
		if len(list.Items) == maxShared {
			list.More++
			continue
		}
		call := newRunning(r)
		// What changes all the time, and arguments, stay here. Time is by the clock that the replicas share.
		call.ElapsedMS, call.Progress, call.Arguments = 0, nil, nil
		call.Time = now.Add(-age).Round(time.Second).UTC()
		list.Items = append(list.Items, call)
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return err
	}
	text := ""
	if len(list.Items) > 0 {
		text = string(encoded)
	}
	if text == last.text && (text == "" || now.Sub(last.stored) < shareAgain) {
		return nil
	}
	err = s.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO console_running (replica, calls, at) VALUES ($1, $2, $3)
			ON CONFLICT (replica) DO UPDATE SET calls = excluded.calls, at = excluded.at`, s.Replica(), text,
			now.UnixMilli())
		return err
	})
	if err == nil {
		*last = sharedCalls{text, now}
	}
	return err
}

// forgetShared deletes the lists of replicas that have ended, and old requests to stop calls.
func (c *Console) forgetShared(ctx context.Context, tx *sql.Tx) error {
	before := c.options.Store.Time().Add(-shareOld).UnixMilli()
	for _, table := range []string{"console_running", "console_stop"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE at < $1`, before); err != nil {
			return err
		}
	}
	return nil
}

// others returns the running calls of the other replicas in the list, by their names.
func (c *Console) others(ctx context.Context, replicas []store.Replica) (calls []*runningJSON, more int, err error) {
	s := c.options.Store
	type row struct{ replica, calls string }
	scan := func(rows *sql.Rows) (r row, err error) {
		err = rows.Scan(&r.replica, &r.calls)
		return r, err
	}
	list, err := store.List(ctx, s, scan,
		`SELECT replica, calls FROM console_running WHERE replica <> $1 AND length(calls) <= $2`,
		s.Replica(), maxSharedText)
	if err != nil {
		return nil, 0, err
	}
	now := s.Time()
	for _, row := range list {
		i := slices.IndexFunc(replicas, func(r store.Replica) bool { return r.ID == row.replica })
		var shared runningListJSON
		if i < 0 || json.Unmarshal([]byte(row.calls), &shared) != nil { // it has ended, or has no calls
			continue
		}
		for _, call := range shared.Items {
			if call != nil {
				call.Replica, call.ElapsedMS = nameOf(&replicas[i]), milliseconds(max(0, now.Sub(call.Time)))
				calls = append(calls, call)
			}
		}
		more += max(0, shared.More)
	}
	return calls, more, nil
}

// other returns the running call of another replica with the ID, or nil.
func (c *Console) other(ctx context.Context, id string) (*runningJSON, error) {
	replicas, err := c.options.Store.Replicas(ctx)
	if err != nil || len(replicas) < 2 {
		return nil, err
	}
	calls, _, err := c.others(ctx, replicas)
	if i := slices.IndexFunc(calls, func(r *runningJSON) bool { return r.ID == id }); i >= 0 {
		return calls[i], err
	}
	return nil, err
}

// requestStop makes the replica that runs the call stop it.
func (c *Console) requestStop(ctx context.Context, id string) error {
	s := c.options.Store
	return s.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO console_stop (call, at) VALUES ($1, $2) ON CONFLICT (call) DO NOTHING`,
			id, s.Time().UnixMilli())
		if err != nil {
			return err
		}
		return s.Announce(ctx, tx, stopTopic)
	})
}

// stopRequested stops the calls here that other replicas want to be stopped.
func (c *Console) stopRequested(ctx context.Context) error {
	ids, err := store.List(ctx, c.options.Store, store.Column[string], `SELECT call FROM console_stop WHERE at >= $1`,
		c.options.Store.Time().Add(-shareOld).UnixMilli())
	for _, id := range ids {
		if running := c.options.Traffic.runningCall(id); running != nil {
			running.Stop()
		}
	}
	return err
}

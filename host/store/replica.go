package store

import (
	"context"
	"database/sql"
	"os"
	"time"
)

const (
	// Replicas send a heartbeat every replicaBeat, and count as dead after replicaGone without one.
	replicaBeat = 5 * time.Second
	replicaGone = 15 * time.Second
)

// Replica is a process that uses the store.
type Replica struct {
	// ID is 16 random hexadecimal digits, new at each start.
	ID string
	// Host is the name of the machine, Version the version of the program.
	Host, Version string
	// Started is the time of Join, and Seen the time of the last heartbeat, which is sent every 5 seconds, by the clock
	// of the store.
	Started, Seen time.Time
}

// Replica returns the ID of this process, even if it has not joined.
func (s *Store) Replica() string { return s.replica }

// Join adds this process to the list of Replicas until Close, and starts its heartbeat. It must be called at most once.
func (s *Store) Join(ctx context.Context, version string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if err := s.heartbeat(ctx, host, version); err != nil {
		return err
	}
	s.joined.Store(true)
	s.every(replicaBeat, func(ctx context.Context) error { return s.heartbeat(ctx, host, version) })
	return nil
}

// heartbeat updates this replica's entry.
func (s *Store) heartbeat(ctx context.Context, host, version string) error {
	ctx, cancel := context.WithTimeout(ctx, replicaGone)
	defer cancel()
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO replica (id, host, version, started, seen) VALUES ($1, $2, $3, $4, $4)
			ON CONFLICT (id) DO UPDATE SET seen = excluded.seen`, s.replica, host, version, now.UnixMilli())
		return err
	})
}

// ForgetReplicas deletes replicas that died more than a day ago, and rows with times to come, which no replica writes.
// One of the replicas calls it from time to time. Errors are those of Update.
func (s *Store) ForgetReplicas(ctx context.Context) error {
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err == nil {
			day := 24 * time.Hour
			_, err = tx.ExecContext(ctx, "DELETE FROM replica WHERE seen < $1 OR seen > $2",
				now.Add(-day).UnixMilli(), now.Add(day).UnixMilli())
		}
		return err
	})
}

// unregister removes this replica from the list.
func (s *Store) unregister() {
	if !s.joined.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Update(ctx, func(tx *sql.Tx) error { // if this fails, the replica counts as dead soon
		_, err := tx.ExecContext(ctx, "DELETE FROM replica WHERE id = $1", s.replica)
		return err
	})
}

// Replicas lists the live replicas, the oldest first. A process that ends without Close stays in the list for 15
// seconds.
func (s *Store) Replicas(ctx context.Context) ([]Replica, error) {
	return s.readReplicas(ctx, -replicaGone, time.Hour)
}

// LostReplicas lists those that ended within the last hour without Close, the oldest first.
func (s *Store) LostReplicas(ctx context.Context) ([]Replica, error) {
	return s.readReplicas(ctx, -time.Hour, -replicaGone)
}

// maxReplicas bounds the list of replicas, maxReplicaText the texts of one, in characters.
const maxReplicas, maxReplicaText = 1000, 1000

// readReplicas lists the replicas that were seen from one time to another, which are relative to now.
func (s *Store) readReplicas(ctx context.Context, from, to time.Duration) (list []Replica, err error) {
	if s.unprepared {
		return nil, nil // no hako has used it
	}
	err = s.View(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err != nil {
			return err
		}
		list, err = Select(ctx, tx, scanReplica, `SELECT id, host, version, started, seen FROM replica
			WHERE seen >= $1 AND seen < $2 AND length(id) + length(host) + length(version) <= $3
			ORDER BY started, id LIMIT $4`,
			now.Add(from).UnixMilli(), now.Add(to).UnixMilli(), maxReplicaText, maxReplicas)
		return err
	})
	return list, err
}

func scanReplica(rows *sql.Rows) (r Replica, err error) {
	var started, seen int64
	err = rows.Scan(&r.ID, &r.Host, &r.Version, &started, &seen)
	r.Started, r.Seen = time.UnixMilli(started), time.UnixMilli(seen)
	return r, err
}

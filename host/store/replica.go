package store

import (
	"context"
	"database/sql"
	"os"
	"time"
)

const (
	// replicaBeat is how often a replica says that it lives, and replicaGone after how long without that it is taken for dead.
	replicaBeat = 5 * time.Second
	replicaGone = 15 * time.Second
)

// Replica is a process that runs over the store.
type Replica struct {
	// ID is 16 hexadecimal digits, chosen anew at each start.
	ID string
	// Host is the machine's name, Version the program's.
	Host, Version string
	// Started and Seen are by the clock of the store: when it joined, and when it last said that it lives, which it does every 5 seconds.
	Started, Seen time.Time
}

// Replica returns the id of this Store's process in the list of Replicas, whether it is in there or not.
func (s *Store) Replica() string { return s.replica }

// Join puts this process into the list of Replicas until Close. It is called once, after which the store keeps the entry fresh.
func (s *Store) Join(ctx context.Context, version string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if err := s.beat(ctx, host, version); err != nil {
		return err
	}
	s.joined.Store(true)
	s.every(replicaBeat, func(ctx context.Context) error { return s.beat(ctx, host, version) })
	return nil
}

// beat says that this replica lives.
func (s *Store) beat(ctx context.Context, host, version string) error {
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

// ForgetReplicas deletes replicas that died more than a day ago. One of the processes over the store calls it from time to time. Errors are as
// for Update.
func (s *Store) ForgetReplicas(ctx context.Context) error {
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM replica WHERE seen < $1", now.Add(-24*time.Hour).UnixMilli())
		}
		return err
	})
}

// leave takes this replica off the list.
func (s *Store) leave() {
	if !s.joined.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Update(ctx, func(tx *sql.Tx) error { // it is taken for dead in a moment otherwise
		_, err := tx.ExecContext(ctx, "DELETE FROM replica WHERE id = $1", s.replica)
		return err
	})
}

// Replicas lists the processes that have joined and live, the oldest first: who dies without Close is in the list for 15 seconds more.
func (s *Store) Replicas(ctx context.Context) (list []Replica, err error) {
	err = s.View(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err != nil {
			return err
		}
		list, err = readReplicas(ctx, tx, now.Add(-replicaGone))
		return err
	})
	return list, err
}

func readReplicas(ctx context.Context, tx *sql.Tx, since time.Time) ([]Replica, error) {
	return Select(ctx, tx, scanReplica, "SELECT id, host, version, started, seen FROM replica WHERE seen >= $1 ORDER BY started, id", since.UnixMilli())
}

func scanReplica(rows *sql.Rows) (r Replica, err error) {
	var started, seen int64
	err = rows.Scan(&r.ID, &r.Host, &r.Version, &started, &seen)
	r.Started, r.Seen = time.UnixMilli(started), time.UnixMilli(seen)
	return r, err
}

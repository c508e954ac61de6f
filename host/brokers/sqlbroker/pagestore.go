package sqlbroker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/store"
)

// PageStore stores the pages of plugins' databases in a store that several processes share. It is safe for concurrent
// use.
type PageStore struct {
	store *store.Store
	// open limits the calls that use connections of the store, so that a writer always gets a second one.
	open chan struct{}
}

var _ database.PageStore = (*PageStore)(nil)

// migrations create the store's tables.
var migrations = []string{
	`CREATE TABLE plugin_database (name TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, length BIGINT NOT NULL);
	CREATE TABLE plugin_page (database TEXT NOT NULL, number BIGINT NOT NULL, version BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (database, number));
	CREATE INDEX plugin_page_version ON plugin_page (database, version)`,
}

// Snapshots use at most maxSnapshots connections of the store and leave reservedConnections of them free.
const maxSnapshots, reservedConnections = 8, 2

// NewPageStore returns the PageStore in s and applies its migrations. Errors are those of s.
func NewPageStore(ctx context.Context, s *store.Store) (*PageStore, error) {
	if err := s.Migrate(ctx, "plugin databases", migrations...); err != nil {
		return nil, err
	}
	return &PageStore{store: s, open: make(chan struct{},
			max(1, min(maxSnapshots, s.Connections()-reservedConnections)))},
		nil
}

// Lock implements database.PageStore. Commit detects a lock that was lost with its connection, by the version.
func (p *PageStore) Lock(ctx context.Context, name string) (release func(), err error) {
	_, release, err = p.store.Lock(ctx, "plugin database "+name)
	return release, err
}

// Commit implements database.PageStore.
func (p *PageStore) Commit(ctx context.Context, name string, version, length int64, pages []database.Page) error {
	return p.store.Update(ctx, func(tx *sql.Tx) error {
		if err := advance(ctx, tx, name, version, length); err != nil {
			return err
		}
		for some := range slices.Chunk(pages, maxRows) {
			if err := writePages(ctx, tx, name, version+1, some); err != nil {
				return err
			}
		}
		return nil
	})
}

// advance increments the database's version.
func advance(ctx context.Context, tx *sql.Tx, name string, version, length int64) error {
	const begin = "INSERT INTO plugin_database (name, version, length) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING"
	const next = "UPDATE plugin_database SET version = version + 1, length = $1 WHERE name = $2 AND version = $3"
	query, args := next, []any{length, name, version}
	if version == 0 {
		query, args = begin, []any{name, length}
	}
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return database.ErrChanged
}

// maxRows limits the pages that one statement writes.
const maxRows = 128

func writePages(ctx context.Context, tx *sql.Tx, name string, version int64, pages []database.Page) error {
	var query strings.Builder
	query.WriteString("INSERT INTO plugin_page (database, number, version, data) VALUES ")
	query.WriteString("($1, $2, $3, $4)")
	args := []any{name, pages[0].Number, version, pages[0].Data}
	for _, page := range pages[1:] {
		fmt.Fprintf(&query, ", ($1, $%d, $3, $%d)", len(args)+1, len(args)+2)
		args = append(args, page.Number, page.Data)
	}
	query.WriteString(" ON CONFLICT (database, number) DO UPDATE SET version = excluded.version, data = excluded.data")
	_, err := tx.ExecContext(ctx, query.String(), args...)
	return err
}

// snapshot is a read-only transaction of the store.
type snapshot struct {
	name            string
	version, length int64
	// reads are the functions to run in the transaction. Closing it ends the transaction, whose error is sent on ended.
	reads   chan func(*sql.Tx)
	ended   chan error
	stop    context.CancelFunc
	release func()
}

var errTxEnded = errors.New("the transaction has ended")

// Snapshot implements database.PageStore.
func (p *PageStore) Snapshot(ctx context.Context, name string) (database.Snapshot, error) {
	select {
	case p.open <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// The transaction outlives the deadline of this statement, because later statements have their own deadlines.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &snapshot{name: name, reads: make(chan func(*sql.Tx)), ended: make(chan error, 1), stop: stop,
		release: func() { <-p.open }}
	began := false
	go func() {
		s.ended <- p.store.View(inner, func(tx *sql.Tx) error {
			if began {
				return errTxEnded // the connection is lost, and a new transaction would see another version
			}
			began = true
			for read := range s.reads {
				read(tx)
			}
			return nil
		})
	}()
	err := s.read(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT version, length FROM plugin_database WHERE name = $1",
			name).Scan(&s.version, &s.length)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// read runs f in the transaction.
func (s *snapshot) read(ctx context.Context, f func(*sql.Tx) error) error {
	done := make(chan error, 1)
	select {
	case s.reads <- func(tx *sql.Tx) { done <- f(tx) }:
		return <-done
	case err := <-s.ended:
		s.ended <- err
		if err == nil {
			err = errTxEnded
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements database.Snapshot.
func (s *snapshot) Close() error {
	close(s.reads)
	err := <-s.ended
	s.stop()
	s.release()
	return err
}

// Version implements database.Snapshot.
func (s *snapshot) Version() int64 { return s.version }

// Length implements database.Snapshot.
func (s *snapshot) Length() int64 { return s.length }

// Changed implements database.Snapshot.
func (s *snapshot) Changed(ctx context.Context, version int64) (numbers []int64, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		numbers, err = store.Select(ctx, tx, store.Column[int64],
			"SELECT number FROM plugin_page WHERE database = $1 AND version > $2", s.name, version)
		return err
	})
	return numbers, err
}

// Read implements database.Snapshot.
func (s *snapshot) Read(ctx context.Context, first, n int64) (pages []database.Page, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		pages, err = store.Select(ctx, tx, scanPage, "SELECT number, data FROM plugin_page WHERE database = $1 AND "+
			"number >= $2 AND number < $3", s.name, first, first+n)
		return err
	})
	return pages, err
}

func scanPage(rows *sql.Rows) (page database.Page, err error) {
	err = rows.Scan(&page.Number, &page.Data)
	return page, err
}

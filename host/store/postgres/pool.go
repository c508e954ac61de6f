package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hako-run/hako/host/store"
)

// libraryConnections is the maximum number of connections of Pool.
const libraryConnections = 4

// Pool returns a pool of 4 connections to the PostgreSQL database of a store, or nil for a directory. The store closes
// it. It is meant for a library that needs a pool (package background); others use Update and View. Its connections may
// wait for notifications without a timeout, unlike the ones for transactions.
func Pool(s *store.Store) (*pgxpool.Pool, error) {
	e, ok := s.Engine().(*engine)
	if !ok {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.library != nil {
		return e.library, nil
	}
	config := e.pool.Config()
	config.ConnConfig = e.config.Copy()
	config.MaxConns = libraryConnections
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", e.Name(), err)
	}
	e.library = pool
	return pool, nil
}

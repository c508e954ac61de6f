package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// libraryConnections is the most connections of Pool.
const libraryConnections = 4

// Pool returns a pool of 4 connections to the PostgreSQL database, which stays the store's, and nil for a directory. It is for a library
// that wants one (package background); everybody else has transactions. A connection of it may wait for news for as long as it likes, which
// one for transactions may not.
func (s *Store) Pool() (*pgxpool.Pool, error) {
	e, ok := s.engine.(*postgres)
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
		return nil, fmt.Errorf("store %s: %w", e.name(), err)
	}
	e.library = pool
	return pool, nil
}

// Package storetest creates stores for tests, with SQLite, or with PostgreSQL in "make postgres". Where returns the
// location of a new store, and Open opens it.
package storetest

import (
	"os"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// Where returns the location of a new, empty store for drivers.Open: a directory of the test, or a PostgreSQL database if
// the environment variable TEST_STORE is "postgres".
func Where(t testing.TB) string {
	t.Helper()
	if os.Getenv("TEST_STORE") == "postgres" {
		return postgrestest.Start(t)
	}
	return t.TempDir()
}

// Open opens the store at where until the end of the test.
func Open(t testing.TB, where string) *store.Store {
	t.Helper()
	s, err := drivers.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

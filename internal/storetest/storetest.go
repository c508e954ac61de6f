// Package storetest says where tests keep their stores, so that each of them can run over every database that hako knows.
package storetest

import (
	"os"
	"testing"

	"github.com/hako-run/hako/internal/postgrestest"
)

// Postgres reports whether tests run over PostgreSQL: where the environment variable TEST_STORE is "postgres".
func Postgres() bool { return os.Getenv("TEST_STORE") == "postgres" }

// Where returns the place of a new, empty store, for store.Open: a directory of the test, or a database of a PostgreSQL server where Postgres
// reports true.
func Where(t testing.TB) string {
	t.Helper()
	if Postgres() {
		return postgrestest.Start(t)
	}
	return t.TempDir()
}

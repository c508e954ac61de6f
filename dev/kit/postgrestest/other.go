//go:build !unix

// Package postgrestest starts PostgreSQL servers for tests, on systems with Unix sockets.
package postgrestest

import "testing"

// Start skips the test.
func Start(t testing.TB) string {
	t.Helper()
	t.Skip("tests with PostgreSQL need unix sockets")
	return ""
}

// Pooled skips the test.
func Pooled(t testing.TB, _, _ string, _ ...string) string { return Start(t) }

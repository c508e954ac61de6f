package database

import (
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/pdk/abi"
)

const rows = 10_000

var fill = []string{table, "INSERT INTO item WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT " +
	"10000) SELECT x, 'name ' || x, x / 2.0 FROM c"}

const (
	point  = "SELECT id, name, value FROM item WHERE id = ?"
	insert = "INSERT INTO item (name, value) VALUES (?, ?)"
)

// direct opens a database with the same content and settings directly with the driver.
func direct(b *testing.B, query string) (*sqlite3.Conn, *sqlite3.Stmt) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "direct.db")
	db, err := Open(b.Context(), Options{Path: path, Migrations: fill, Quota: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	c, err := sqlite3.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	stmt, _, err := c.Prepare(query)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = stmt.Close(), c.Close() })
	return c, stmt
}

func benchSession(b *testing.B) *Session {
	b.Helper()
	db, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "bench.db"),
		Migrations: fill, Quota: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	s := db.Session(nil)
	b.Cleanup(func() { _, _ = s.Close(), db.Close() })
	return s
}

func BenchmarkSelect(b *testing.B) {
	s := benchSession(b)
	i := int64(0)
	for b.Loop() {
		i = i%rows + 1
		if r := s.Query(b.Context(), &abi.SQLStatement{SQL: point, Args: []any{i}}); len(r.Rows) != 1 {
			b.Fatal(r.Error)
		}
	}
}

func BenchmarkSelectDirect(b *testing.B) {
	_, stmt := direct(b, point)
	i := int64(0)
	row := make([]any, 3)
	for b.Loop() {
		i = i%rows + 1
		if err := stmt.BindInt64(1, i); err != nil {
			b.Fatal(err)
		}
		if !stmt.Step() || stmt.Columns(row...) != nil {
			b.Fatal(stmt.Err())
		}
		if err := stmt.Reset(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInsert(b *testing.B) {
	s := benchSession(b)
	if err := s.Begin(b.Context(), true); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := s.Exec(b.Context(), &abi.SQLStatement{SQL: insert, Args: []any{nil, 1.5}}); r.Error != nil {
			b.Fatal(r.Error)
		}
	}
}

func BenchmarkInsertDirect(b *testing.B) {
	c, stmt := direct(b, insert)
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := stmt.BindFloat(2, 1.5); err != nil {
			b.Fatal(err)
		}
		if err := stmt.Exec(); err != nil {
			b.Fatal(err)
		}
	}
}

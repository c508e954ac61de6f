package database

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/pdk/abi"
)

const table = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, value)"

func options(t *testing.T, migrations ...string) Options {
	t.Helper()
	if *inPlace {
		return Options{PageStore: newMemoryPageStore(), Path: "test", Migrations: migrations, Quota: 8 << 20}
	}
	return Options{Path: filepath.Join(t.TempDir(), "place with ?#%", "test.db"),
		Migrations: migrations, Quota: 8 << 20}
}

func openTest(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// session starts a session that fails the test on a Fault.
func session(t *testing.T, db *DB) *Session {
	t.Helper()
	s := db.Session(func(err *Fault) { t.Errorf("the host failed: %v", err) })
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newSession(t *testing.T) *Session {
	t.Helper()
	return session(t, openTest(t, options(t, table)))
}

func statement(sql string, args ...any) *abi.SQLStatement {
	return &abi.SQLStatement{SQL: sql, Args: args}
}

func (s *Session) must(t *testing.T, sql string, args ...any) *abi.SQLResult {
	t.Helper()
	r := s.Exec(t.Context(), statement(sql, args...))
	if r.Error != nil {
		t.Fatalf("%s: %v", sql, r.Error)
	}
	return r
}

// value returns the single value of a query's result.
func (s *Session) value(t *testing.T, sql string, args ...any) any {
	t.Helper()
	r := s.Query(t.Context(), statement(sql, args...))
	if r.Error != nil {
		t.Fatalf("%s: %v", sql, r.Error)
	}
	if len(r.Rows) != 1 || len(r.Rows[0]) != 1 {
		t.Fatalf("%s gives %v", sql, r.Rows)
	}
	return r.Rows[0][0]
}

// wants fails the test unless err has the code and contains the text.
func wants(t *testing.T, err *abi.Error, code, text string) {
	t.Helper()
	if err == nil || err.Code != code || !strings.Contains(err.Message, text) {
		t.Errorf("got %+v, want %s: %s", err, code, text)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for name, v := range map[string]any{
		"null": nil, "zero": int64(0), "largest": int64(math.MaxInt64), "smallest": int64(math.MinInt64),
		"beyond 2^53": int64(1<<53 + 1),
		"real":        1.5, "whole real": 2.0, "small real": 5e-324, "large real": math.MaxFloat64,
		"infinite": math.Inf(1), "text": "日本語\n\"\\",
		"no text": "", "NUL": "a\x00b", "emoji": "🗾", "blob": []byte{0, 255, 128}, "no blob": []byte{},
	} {
		if got := s.value(t, "SELECT ?", v); !reflect.DeepEqual(got, v) {
			t.Errorf("%s: got %#v, want %#v", name, got, v)
		}
		s.must(t, "INSERT INTO item (name, value) VALUES (?, ?)", name, v)
		if got := s.value(t, "SELECT value FROM item WHERE name = ?", name); !reflect.DeepEqual(got, v) {
			t.Errorf("%s: got %#v from the table, want %#v", name, got, v)
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if r := s.must(t, "INSERT INTO item (name) VALUES ('a'), ('b')"); r.Changes != 2 || r.LastInsertID != 2 {
		t.Errorf("%+v", r)
	}
	if r := s.must(t, "UPDATE item SET value = 1 WHERE name = 'a'"); r.Changes != 1 || r.LastInsertID != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.must(t, "CREATE INDEX item_value ON item (value)"); r.Changes != 0 {
		t.Errorf("%+v: an earlier statement's changes", r)
	}
	r := s.Query(t.Context(), statement("INSERT INTO item (name) VALUES ('c') RETURNING id, name"))
	want := &abi.SQLResult{Columns: []string{"id", "name"}, Rows: [][]any{{int64(3), "c"}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v", r)
	}
	r = s.Query(t.Context(), statement("SELECT id FROM item WHERE id > 5"))
	if r.Error != nil || len(r.Rows) != 0 || !reflect.DeepEqual(r.Columns, []string{"id"}) {
		t.Errorf("got %+v", r)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	s.must(t, "CREATE TABLE part (item INTEGER NOT NULL REFERENCES item, n INTEGER CHECK (n > 0)) STRICT")
	for name, test := range map[string]struct {
		sql, code, text string
		args            []any
	}{
		"unique": {sql: "INSERT INTO item (name) VALUES ('a')", code: abi.CodeConflict,
			text: "UNIQUE constraint failed: item.name"},
		"foreign key": {sql: "INSERT INTO part VALUES (9, 1)", code: abi.CodeConflict,
			text: "FOREIGN KEY constraint failed"},
		"check": {sql: "INSERT INTO part VALUES (1, 0)", code: abi.CodeConflict,
			text: "CHECK constraint failed: n > 0"},
		"not null": {sql: "INSERT INTO part (n) VALUES (1)", code: abi.CodeConflict,
			text: "NOT NULL constraint failed: part.item"},
		"type": {sql: "INSERT INTO part VALUES ('x', 1)", code: abi.CodeConflict,
			text: "cannot store TEXT value in INTEGER column part.item"},
		"syntax": {sql: "SELECT 1\nFORM item", code: abi.CodeInvalid,
			text: `near "item": syntax error, at line 2, column 6`},
		"no table": {sql: "SELECT * FROM orders", code: abi.CodeInvalid, text: "no such table: orders"},
		"no column": {sql: "SELECT 'é', nmae FROM item", code: abi.CodeInvalid,
			text: "no such column: nmae, at line 1, column 13"},
		"text for a name":  {sql: `SELECT "nmae" FROM item`, code: abi.CodeInvalid, text: "no such column"},
		"empty":            {sql: " -- nothing\n", code: abi.CodeInvalid, text: "empty"},
		"two statements":   {sql: "SELECT 1; DELETE FROM item", code: abi.CodeInvalid, text: "several statements"},
		"a second, broken": {sql: "SELECT 1; nonsense", code: abi.CodeInvalid, text: "several statements"},
		"hidden in a comment": {sql: "SELECT 1 -- x\n;;; /* y */ DELETE FROM item", code: abi.CodeInvalid,
			text: "several statements"},
		"NUL":                   {sql: "SELECT 1\x00; DELETE FROM item", code: abi.CodeInvalid, text: "NUL"},
		"SQL that is not UTF-8": {sql: "SELECT '\xff'", code: abi.CodeInvalid, text: "not UTF-8"},
		"too few values": {sql: "SELECT ?, ?", args: []any{int64(1)}, code: abi.CodeInvalid,
			text: "has 2 parameters, but got 1 values"},
		"too many values": {sql: "SELECT 1", args: []any{int64(1)}, code: abi.CodeInvalid,
			text: "has 0 parameters, but got 1 values"},
		"not UTF-8": {sql: "SELECT ?", args: []any{"\xff"}, code: abi.CodeInvalid,
			text: "parameter 1 is not UTF-8"},
		"another type": {sql: "SELECT ?", args: []any{true}, code: abi.CodeInvalid,
			text: "parameter 1 has the type bool"},
		"text that is none": {sql: "SELECT 'a', CAST(x'ff' AS TEXT) AS x", code: abi.CodeInvalid,
			text: "row 1, column x is text but not UTF-8"},
		"overflow": {sql: "SELECT abs(-9223372036854775807 - 1)", code: abi.CodeInvalid,
			text: "integer overflow"},
		"raised": {sql: "INSERT INTO guarded VALUES (1)", code: abi.CodeConflict, text: "not today"},
	} {
		if name == "raised" {
			s.must(t, "CREATE TABLE guarded (a)")
			s.must(t, "CREATE TRIGGER no BEFORE INSERT ON guarded BEGIN SELECT RAISE(ABORT, 'not today'); END")
		}
		r := s.Query(t.Context(), statement(test.sql, test.args...))
		if r.Error == nil || r.Error.Code != test.code || !strings.Contains(r.Error.Message, test.text) {
			t.Errorf("%s: got %+v, want %s: %s", name, r.Error, test.code, test.text)
		}
	}
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(1) {
		t.Errorf("%v rows are left", n)
	}
	s.must(t, "SELECT 1 ;; -- and a comment")
	s.must(t, "CREATE TRIGGER loud BEFORE DELETE ON guarded BEGIN SELECT RAISE(ABORT, CAST(zeroblob(2) || x'ff' || "+
		"hex(zeroblob(1000000)) AS TEXT)); END")
	s.must(t, "DROP TRIGGER no")
	s.must(t, "INSERT INTO guarded VALUES (1)")
	if r := s.Exec(t.Context(), statement("DELETE FROM guarded")); r.Error == nil || len(r.Error.Message) > 2000 ||
		!utf8.ValidString(r.Error.Message) {
		t.Errorf("got %.100v", r.Error)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	const count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT ?) SELECT x FROM c"
	if r := s.Query(t.Context(), statement(count, int64(MaxRows))); r.Error != nil || len(r.Rows) != MaxRows {
		t.Errorf("%d rows, %v", len(r.Rows), r.Error)
	}
	r := s.Query(t.Context(), statement(count, int64(MaxRows+1)))
	wants(t, r.Error, abi.CodeLimit, "more than 10000 rows")
	r = s.Query(t.Context(), statement("SELECT zeroblob(3000000), zeroblob(2000000)"))
	wants(t, r.Error, abi.CodeLimit, "larger than 4194304 bytes")
	large := make([]byte, MaxBytes-100)
	if got := s.value(t, "SELECT ?", large); len(got.([]byte)) != len(large) {
		t.Errorf("%d bytes", len(got.([]byte)))
	}
	r = s.Exec(t.Context(), statement("SELECT ?", make([]byte, MaxBytes+1)))
	wants(t, r.Error, abi.CodeLimit, "larger than 4194304 bytes")
	r = s.Exec(t.Context(), statement("SELECT 1 --"+strings.Repeat(" ", maxSQL)))
	wants(t, r.Error, abi.CodeLimit, "at most 262144 bytes")
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := openTest(t, options(t, table))
	s, other := session(t, db), session(t, db)
	wants(t, s.Commit(ctx), abi.CodeInvalid, "no transaction is open")
	wants(t, s.Rollback(ctx), abi.CodeInvalid, "no transaction is open")
	if err := s.Begin(ctx, true); err != nil {
		t.Fatal(err)
	}
	wants(t, s.Begin(ctx, true), abi.CodeInvalid, "already open")
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	if n := other.value(t, "SELECT count(*) FROM item"); n != int64(0) {
		t.Errorf("another session sees %v rows before the commit", n)
	}
	if n := s.value(t, "SELECT last_insert_rowid()"); n != int64(1) {
		t.Errorf("last_insert_rowid is %v in the transaction", n)
	}
	wants(t, s.Exec(ctx, statement("INSERT INTO item (name) VALUES ('a')")).Error, abi.CodeConflict, "UNIQUE")
	s.must(t, "INSERT INTO item (name) VALUES ('b')") // a failed statement does not end the transaction
	if err := s.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if n := other.value(t, "SELECT count(*) FROM item"); n != int64(2) {
		t.Errorf("%v rows after the commit", n)
	}
	if err := s.Begin(ctx, true); err != nil {
		t.Fatal(err)
	}
	s.must(t, "DELETE FROM item")
	if err := s.Close(); err != nil { // like at the end of a call
		t.Fatal(err)
	}
	if n := other.value(t, "SELECT count(*) FROM item"); n != int64(2) {
		t.Errorf("%v rows after a transaction that was left open", n)
	}
}

func TestReadTransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := openTest(t, options(t, table))
	s, other := session(t, db), session(t, db)
	if err := s.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(0) {
		t.Fatal(n)
	}
	other.must(t, "INSERT INTO item (name) VALUES ('a')")
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(0) {
		t.Errorf("%v rows, of another moment", n)
	}
	wants(t, s.Exec(ctx, statement("DELETE FROM item")).Error, abi.CodeInvalid, "is read-only")
	if err := s.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(1) {
		t.Errorf("%v rows", n)
	}
}

// TestLostTransaction: after SQLite has rolled back a transaction, further statements must not run outside of it.
func TestLostTransaction(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := s.Exec(ctx, statement("INSERT INTO item (value) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM "+
		"c) SELECT x FROM c WHERE x > 1"))
	wants(t, r.Error, abi.CodeTimeout, "time is up")
	wants(t, s.Exec(t.Context(), statement("INSERT INTO item (name) VALUES ('b')")).Error,
		abi.CodeTimeout, "already rolled back")
	wants(t, s.Begin(t.Context(), true), abi.CodeInvalid, "already open")
	wants(t, s.Commit(t.Context()), abi.CodeTimeout, "already rolled back")
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(0) {
		t.Errorf("%v rows are left", n)
	}
	s.must(t, "INSERT INTO item (name) VALUES ('c')")
}

func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	o := options(t, table, "INSERT INTO item VALUES (1, 'counter', 0)")
	// To SQLite, two DBs of one file are two processes.
	databases := []*DB{openTest(t, o), openTest(t, o)}
	const callers, times = 8, 20
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			for range times {
				s := session(t, databases[i%2])
				if err := s.Begin(t.Context(), true); err != nil {
					t.Error(err)
					return
				}
				n := s.value(t, "SELECT value FROM item WHERE id = 1").(int64)
				s.must(t, "UPDATE item SET value = ? WHERE id = 1", n+1)
				if err := s.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if n := session(t, databases[0]).value(t, "SELECT value FROM item"); n != int64(callers*times) {
		t.Errorf("the counter is at %v, want %d", n, callers*times)
	}
}

func TestReadersDoNotWaitForAWriter(t *testing.T) {
	t.Parallel()
	db := openTest(t, options(t, table))
	writer := session(t, db)
	if err := writer.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	writer.must(t, "INSERT INTO item (name) VALUES ('a')")
	var waiting sync.WaitGroup
	for range 2 * maxConns { // more than connections
		waiting.Go(func() {
			session(t, db).must(t, "INSERT INTO item (value) VALUES (1)")
		})
		waiting.Go(func() {
			r := session(t, db).Query(t.Context(), statement("INSERT INTO item (value) VALUES (1) RETURNING id"))
			if r.Error != nil {
				t.Error(r.Error)
			}
		})
	}
	for range 2 * maxConns {
		if n := session(t, db).value(t, "SELECT count(*) FROM item"); n != int64(0) {
			t.Errorf("%v rows", n)
		}
	}
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if n := session(t, db).value(t, "SELECT count(*) FROM item"); n != int64(4*maxConns+1) {
		t.Errorf("%v rows", n)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"within the process": true, "another process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, table)
			synctest.Test(t, func(t *testing.T) {
				db := openTest(t, o)
				other := db
				if !shared {
					other = openTest(t, o)
				}
				holder, waiting := session(t, db), session(t, other)
				if err := holder.Begin(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				for _, limit := range []time.Duration{time.Minute, time.Second} {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					start := time.Now()
					r := waiting.Exec(ctx, statement("DELETE FROM item"))
					took := time.Since(start)
					switch limit {
					case time.Minute:
						wants(t, r.Error, abi.CodeBusy, "longer than 5s")
					default:
						wants(t, r.Error, abi.CodeTimeout, "time is up")
					}
					if took > min(limit, busyWait)+time.Second {
						t.Errorf("waited %v", took)
					}
					cancel()
				}
				if err := holder.Rollback(t.Context()); err != nil {
					t.Error(err)
				}
				waiting.must(t, "DELETE FROM item")
			})
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	db := openTest(t, o)
	s := session(t, db)
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, s.Exec(t.Context(), statement("SELECT 1")).Error, abi.CodeInternal, "closed")
	if files, err := os.ReadDir(filepath.Dir(o.Path)); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	db := openTest(t, o)
	session(t, db).must(t, "INSERT INTO item (name) VALUES ('a')")
	files, err := os.ReadDir(filepath.Dir(o.Path))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "-shm") {
			continue // contains page numbers, no data
		}
		info, err := file.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	wants(t, s.Query(ctx, statement("SELECT 1")).Error, abi.CodeCanceled, "canceled")
	wants(t, s.Begin(ctx, true), abi.CodeCanceled, "canceled")
	if n := s.value(t, "SELECT 1"); n != int64(1) {
		t.Error(n)
	}
}

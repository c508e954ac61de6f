package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const sqlManifest = `
name: sql
version: 1.0.0
description: Runs statements.
tools:
  - {name: exec, description: d, inputSchema: {type: object}, limits: {time: 500ms}}
  - {name: selects, description: d, inputSchema: {type: object}}
  - {name: inserts, description: d, inputSchema: {type: object}}
permissions: {sql: {reason: r, quota: 1GiB, migrations: ["CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)"]}}
limits: {rate: 1000000}
`

// endless are statements that run much longer than any limit.
var endless = []string{
	"SELECT count(*) FROM c", "SELECT x, randomblob(20) AS y FROM c ORDER BY y",
	"SELECT count(*) FROM c GROUP BY randomblob(20)",
	"SELECT sum(length(replace(hex(zeroblob(1000000)), '0', '11'))) FROM c", "INSERT INTO counter SELECT x FROM c",
}

// sql compares a guest's statement with the direct use of the driver, and measures how fast endless statements are
// stopped.
func (r *results) sql(t *testing.T) {
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/sql"),
		map[string][]byte{abi.ManifestSection: []byte(sqlManifest)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(&host.Options{
		CacheDir: guesttest.CacheDir(t), DataDir: t.TempDir(),
		Shipped: []host.Shipped{{File: "sql.wasm", Wasm: guesttest.Bytes(wasm)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := func(name, arguments string, want pipeline.Outcome) time.Duration {
		start := time.Now()
		result, err := h.Call(t.Context(), &pipeline.Call{Request: *tool(name, arguments)})
		if err != nil || result.Outcome != want {
			t.Fatalf("%s %s: %+v, %v", name, arguments, result, err)
		}
		return time.Since(start)
	}
	const n = 1000
	guest := func(name string) time.Duration {
		return call(name, fmt.Sprintf(`{"n":%d}`, n), pipeline.OK) / n
	}
	for start := time.Now(); time.Since(start) < *duration; {
		guest("selects") // waits until the plugin is compiled
	}
	selecting, inserting := direct(t)
	for _, statement := range []struct {
		name, tool string
		direct     func(n int) time.Duration
	}{{"query", "selects", selecting}, {"insert", "inserts", inserting}} {
		brokered, plain := time.Hour, time.Hour
		for range 5 {
			brokered, plain = min(brokered, guest(statement.tool)), min(plain, statement.direct(n))
		}
		r.add(t, "sql_"+statement.name+"_ratio", float64(brokered)/float64(plain), "guest/driver")
		r.add(t, "sql_"+statement.name+"_overhead_us", us(brokered-plain), "us")
	}
	const limit = 500 * time.Millisecond
	var worst time.Duration
	for _, statement := range endless {
		statement = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) " + statement
		worst = max(worst, call("exec", fmt.Sprintf(`{"sql":%q}`, statement), pipeline.Timeout)-limit)
	}
	r.add(t, "sql_deadline_overshoot_ms", ms(worst), "ms")
}

// direct returns a function that measures a statement with the direct use of the driver.
func direct(t *testing.T) (selecting, inserting func(n int) time.Duration) {
	t.Helper()
	db, err := sqlite3.Open("file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "direct.db")) +
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Exec("CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	times := func(query, before, after string) func(int) time.Duration {
		stmt, _, err := db.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stmt.Close() })
		row := make([]any, stmt.ColumnCount())
		return func(n int) time.Duration {
			start := time.Now()
			err := db.Exec(before)
			for range n {
				if err == nil {
					err = stmt.BindInt64(1, 1)
				}
				for err == nil && stmt.Step() {
					err = stmt.Columns(row...)
				}
				if err == nil {
					err = stmt.Reset()
				}
			}
			if err == nil {
				err = db.Exec(after)
			}
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(start) / time.Duration(n)
		}
	}
	return times("SELECT n FROM counter WHERE rowid = ?", "", ""), times("INSERT INTO counter VALUES (?)",
		"BEGIN IMMEDIATE", "COMMIT")
}

package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// database makes a plugin with tools for SQL and with migrations.
func database(t *testing.T, migrations ...string) []byte {
	t.Helper()
	text := "name: database\nversion: 1.0.0\ndescription: d\nlicense: Apache-2.0\ntools:\n"
	for _, tool := range []string{"query", "exec", "count", "values", "leave_open"} {
		text += fmt.Sprintf("  - {name: %s, description: d, inputSchema: {type: object}}\n", tool)
	}
	text += "permissions:\n  sql:\n    reason: r\n    migrations:\n"
	for _, migration := range migrations {
		text += fmt.Sprintf("      - %q\n", migration)
	}
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/sql"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

const counter = "CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)"

// databaseWorld is a host with the plugin in service, on the data directory dir.
func databaseWorld(t *testing.T, dir string, migrations ...string) *world {
	t.Helper()
	w := newWorld(t, func(o *host.Options) {
		o.DataDir = dir
		o.Tenants = map[string]host.Tenant{"acme": {}, "ACME": {}, "../acme": {}}
	})
	w.put("database.wasm", database(t, migrations...))
	w.load()
	w.approve("database.wasm", nil)
	w.load()
	return w
}

// sql calls a tool of the plugin and returns its text, or as the error what went wrong.
func (w *world) sql(tenant, tool, statement string) (string, error) {
	w.t.Helper()
	result, err := w.Call(w.t.Context(), &pipeline.Call{
		Caller:  pipeline.Caller{Tenant: tenant},
		Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: fmt.Appendf(nil, `{"sql":%q}`, statement)},
	})
	if err != nil {
		return "", err
	}
	if text := result.Response.Content[0].Text; result.Response.IsError {
		return "", errors.New(text)
	} else {
		return text, nil
	}
}

// gives fails the test unless the query gives want.
func (w *world) gives(tenant, query, want string) {
	w.t.Helper()
	if got, err := w.sql(tenant, "query", query); err != nil || got != want {
		w.t.Errorf("tenant %q: %s gives %q, %v, want %q", tenant, query, got, err, want)
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := databaseWorld(t, dir, counter)
	if _, err := w.sql("", "values", ""); err != nil {
		t.Error(err)
	}
	tenants := []string{"", "acme", "ACME", "../acme"}
	for i, tenant := range tenants {
		for range i {
			if _, err := w.sql(tenant, "count", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, tenant := range tenants {
		w.gives(tenant, "SELECT n FROM counter", fmt.Sprintf("[[%d]]", i))
	}
	if _, err := w.sql("", "exec", "INSERT INTO nothing_there VALUES (1)"); err == nil ||
		!strings.Contains(err.Error(), "no such table: nothing_there") {
		t.Errorf("%v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "plugins", "database", "*"))
	if err != nil || len(files) != len(tenants) {
		t.Errorf("files %v, %v", files, err)
	}
	databaseWorld(t, dir, counter).gives("ACME", "SELECT n FROM counter", "[[2]]")
}

func TestConcurrentTransactions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Two hosts share the directory, such as hako serve and hako call.
	worlds := []*world{databaseWorld(t, dir, counter), databaseWorld(t, dir, counter)}
	const callers, times = 8, 10
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			for range times {
				if _, err := worlds[i%2].sql("", "count", ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	worlds[0].gives("", "SELECT n FROM counter", fmt.Sprintf("[[%d]]", callers*times))
}

func TestTransactionLeftOpen(t *testing.T) {
	t.Parallel()
	w := databaseWorld(t, t.TempDir(), counter)
	if _, err := w.sql("", "leave_open", "UPDATE counter SET n = 7"); err == nil {
		t.Error("it answers")
	}
	w.gives("", "SELECT n FROM counter", "[[0]]")
	if _, err := w.sql("", "count", ""); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestStatementsEndWithTheCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := databaseWorld(t, dir, counter)
	w.gives("", "SELECT n FROM counter", "[[0]]")
	hasty := newWorld(t, func(o *host.Options) { o.DataDir, o.Limits.Time = dir, 300*time.Millisecond })
	hasty.put("database.wasm", database(t, counter))
	hasty.load()
	hasty.approve("database.wasm", nil)
	hasty.load()
	for _, statement := range []string{
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x, randomblob(50) AS y FROM c ORDER BY y",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) INSERT INTO counter SELECT x FROM c",
	} {
		if _, err := hasty.sql("", "exec", statement); err == nil ||
			!strings.Contains(err.Error(), "passed its time limit") {
			t.Errorf("%v", err)
		}
	}
	w.gives("", "SELECT n FROM counter", "[[0]]")
}

func TestDatabaseOfANewerVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := databaseWorld(t, dir, counter)
	w.gives("acme", "SELECT n FROM counter", "[[0]]")

	w.put("database.wasm", database(t, counter, "ALTER TABLE counter ADD COLUMN note TEXT DEFAULT 'new'"))
	w.load()
	w.approve("database.wasm", nil)
	w.load()
	w.gives("acme", "SELECT n, note FROM counter", "[[0 new]]")

	w.put("database.wasm", database(t, counter))
	w.load()
	w.approve("database.wasm", nil)
	w.load()
	if _, err := w.sql("acme", "query", "SELECT 1"); err == nil ||
		!strings.Contains(err.Error(), "a newer version has used it") {
		t.Errorf("%v", err)
	}
	w.gives("", "SELECT n FROM counter", "[[0]]") // this one has not met the newer version

	w.put("database.wasm", database(t, counter, "ALTER TABLE counter ADD COLUMN note TEXT DEFAULT 'new'", "nonsense"))
	w.load()
	w.approve("database.wasm", nil)
	w.load()
	for range 2 {
		if _, err := w.sql("acme", "query", "SELECT 1"); err == nil ||
			!strings.Contains(err.Error(), "migration 3 of the plugin's database fails") {
			t.Errorf("%v", err)
		}
	}
}

func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := databaseWorld(t, dir, counter)
	path := filepath.Join(dir, "plugins", "database", "acme.db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, []byte(strings.Repeat("damage", 1000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sql("acme", "query", "SELECT 1"); err == nil || !strings.Contains(err.Error(), "damaged") ||
		strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	w.gives("", "SELECT n FROM counter", "[[0]]")
}

func TestNoDataDir(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("database.wasm", database(t, counter))
	w.load()
	w.approve("database.wasm", nil)
	w.load()
	w.expect("database.wasm", host.Broken, "set DataDir")
}

package sqlbroker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/kit/brokertest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// guest calls the functions of the module as a guest does.
type guest struct {
	t         testing.TB
	call      *broker.Call
	functions map[string]broker.Function
}

func newGuest(t testing.TB, b *Broker, tenant string) *guest {
	g := &guest{t: t, call: &broker.Call{Plugin: "p", Tool: "t", Tenant: tenant, Memory: make(brokertest.Memory, 64<<10)},
		functions: map[string]broker.Function{}}
	for _, f := range b.Module().Functions {
		g.functions[f.Name] = f
	}
	t.Cleanup(func() { _ = g.call.Close() })
	return g
}

func (g *guest) do(function string, params ...uint64) []byte {
	g.t.Helper()
	f := g.functions[function]
	if len(params) != len(f.Params) {
		g.t.Fatalf("%s takes %d parameters", function, len(f.Params))
	}
	length := f.Do(g.t.Context(), g.call, params)
	data := bytes.Join(g.call.Take(), nil)
	if length != uint64(len(data)) {
		g.t.Fatalf("%s announces %d bytes and gives %d", function, length, len(data))
	}
	return data
}

// send passes JSON and blobs and returns the result.
func (g *guest) send(function, head, blobs string) string {
	g.t.Helper()
	g.call.Memory.Write(0, []byte(head+blobs))
	return string(g.do(function, 0, uint64(len(head)), uint64(len(head)), uint64(len(blobs))))
}

func (g *guest) wants(function, head, want string) {
	g.t.Helper()
	if got := g.send(function, head, ""); !strings.Contains(got, want) {
		g.t.Errorf("%s %s gives %s, want %s", function, head, got, want)
	}
}

const item = "CREATE TABLE item (id INTEGER PRIMARY KEY, value)"

func newBroker(t *testing.T, options Options, migrations ...string) *Broker {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	b := New(&grant.SQL{Migrations: append([]string{item}, migrations...), Quota: 4 << 20}, options)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestModule(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	b := newBroker(t, Options{Observe: func(o Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen[o.Function+" "+o.Code]++
	}})
	if name := b.Module().Name; name != "hako:sql/1" {
		t.Error(name)
	}
	g := newGuest(t, b, "")
	if got := g.send("exec", `{"sql":"INSERT INTO item (value) VALUES (?), (?)","args":[{"blob":2},{"blob":3}]}`,
		"abcde"); got != `{"changes":2,"lastInsertId":2}` {
		t.Error(got)
	}
	if got := g.send("query", `{"sql":"SELECT id, value FROM item"}`,
		""); got != `{"columns":["id","value"],"rows":[[1,{"blob":2}],[2,{"blob":3}]]}` {
		t.Error(got)
	}
	for _, want := range []string{"abcde", ""} {
		if got := string(g.do("blobs")); got != want {
			t.Errorf("blobs gives %q, want %q", got, want)
		}
	}
	g.wants("exec", `{"sql":"INSERT INTO item VALUES (1, 1)"}`, `{"error":{"code":"conflict"`)
	g.wants("exec", `{"sql":"SELECT 1","more":1}`,
		`{"error":{"code":"invalid","message":"the statement is not JSON as docs/abi.md describes it: at byte 25: unknown key \"more\""}}`)
	g.wants("exec", `nonsense`, `not JSON`)
	if got := string(g.do("begin", 1)); got != "" {
		t.Error(got)
	}
	if got := string(g.do("begin", 0)); !strings.Contains(got,
		`{"error":{"code":"invalid","message":"a transaction is already open`) {
		t.Error(got)
	}
	g.wants("exec", `{"sql":"DELETE FROM item"}`, `{"changes":2,`)
	if got := string(g.do("rollback")); got != "" {
		t.Error(got)
	}
	if got := string(g.do("commit")); !strings.Contains(got, "no transaction is open") {
		t.Error(got)
	}
	g.wants("query", `{"sql":"SELECT count(*) FROM item"}`, `[[2]]`)
	want := map[string]int{"exec ": 2, "query ": 2, "exec conflict": 1, "exec invalid": 2, "begin ": 1,
		"begin invalid": 1, "rollback ": 1, "commit invalid": 1}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
}

func TestBadPointers(t *testing.T) {
	t.Parallel()
	g := newGuest(t, newBroker(t, Options{}), "")
	if got := string(g.do("query", 0, 5<<20, 0, 5<<20)); !strings.Contains(got, `{"error":{"code":"limit"`) {
		t.Error(got)
	}
	for _, params := range [][]uint64{{64 << 10, 1, 0, 0}, {0, 1<<16 + 1, 0, 0}, {0, 1, 1<<32 - 1, 2}} {
		func() {
			defer func() {
				if _, ok := recover().(*broker.PointerError); !ok {
					t.Errorf("%v does not trap", params)
				}
			}()
			g.do("query", params...)
		}()
	}
}

func TestNoDir(t *testing.T) {
	t.Parallel()
	b := New(new(grant.SQL), Options{})
	g := newGuest(t, b, "")
	g.wants("query", `{"sql":"SELECT 1"}`, `{"error":{"code":"not-granted"`)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestIdle: idle databases are closed and opened again when needed.
func TestIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, Options{Dir: dir})
		open := func() int {
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.open)
		}
		g := newGuest(t, b, "")
		g.wants("exec", `{"sql":"INSERT INTO item VALUES (1, 1)"}`, `"changes":1`)
		time.Sleep(2 * idleTime) // during the call
		if open() != 1 {
			t.Error("closed while a call uses it")
		}
		_ = g.call.Close()
		time.Sleep(idleTime - time.Second)
		if open() != 1 {
			t.Error("closed too early")
		}
		time.Sleep(2 * time.Second)
		if open() != 0 {
			t.Error("not closed")
		}
		newGuest(t, b, "").wants("query", `{"sql":"SELECT count(*) FROM item"}`, `[[1]]`)
	})
}

func TestManyTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBroker(t, Options{Dir: dir})
	var guests []*guest
	for i := range maxOpen {
		g := newGuest(t, b, fmt.Sprint("tenant", i))
		g.wants("query", `{"sql":"SELECT 1"}`, `[[1]]`)
		guests = append(guests, g)
	}
	newGuest(t, b, "one more").wants("query", `{"sql":"SELECT 1"}`,
		`{"error":{"code":"busy","message":"the databases of 64 tenants`)
	_ = guests[7].call.Close()
	newGuest(t, b, "one more").wants("query", `{"sql":"SELECT 1"}`, `[[1]]`)
	if _, err := os.Stat(filepath.Join(dir, "one%20more.db")); err != nil {
		t.Error(err)
	}
}

// TestSlowMigration: a call waits for migrations until its deadline. They continue without it.
func TestSlowMigration(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Options{}, "INSERT INTO item (value) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 "+
		"FROM c LIMIT 300000) SELECT x FROM c")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	s := b.session(newGuest(t, b, "").call)
	if _, err := s.open(ctx); err == nil || err.Code != abi.CodeBusy {
		t.Errorf("got %v", err)
	}
	newGuest(t, b, "").wants("query", `{"sql":"SELECT count(*) FROM item"}`, `[[300000]]`)
}

func TestClosed(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Options{})
	g := newGuest(t, b, "")
	g.wants("query", `{"sql":"SELECT 1"}`, `[[1]]`)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	g.wants("query", `{"sql":"SELECT 1"}`, "closed")
	newGuest(t, b, "").wants("query", `{"sql":"SELECT 1"}`, "removed")
}

package wasi_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/wasm/component"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{Environment: [][2]string{{"city", "Kyoto"}, {"key", ""}}})
	for _, name := range []string{"store", "runtime"} {
		g.want(g.ok("wasi:config/"+name+"#get", "city"), component.Some("Kyoto"))
		g.want(g.ok("wasi:config/"+name+"#get", "key"), component.Some(""))
		g.want(g.ok("wasi:config/"+name+"#get", "other"), component.None)
		g.want(g.ok("wasi:config/"+name+"#get-all"), []any{[]any{"city", "Kyoto"}, []any{"key", ""}})
	}
}

const store, atomics, batch = "wasi:keyvalue/store#", "wasi:keyvalue/atomics#", "wasi:keyvalue/batch#"

// databaseGuest returns a guest with a private database.
func databaseGuest(t *testing.T) *guest {
	t.Helper()
	db := sqlbroker.New(&grant.SQL{}, sqlbroker.Options{Dir: t.TempDir()})
	g := newGuest(t, wasi.Options{SQL: db})
	t.Cleanup(func() {
		g.end()
		_ = db.Close()
	})
	return g
}

func TestKeyValue(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b, other := g.ok(store+"open", "a"), g.ok(store+"open", "")
	g.want(g.ok(store+"[method]bucket.get", b, "k"), component.None)
	g.ok(store+"[method]bucket.set", b, "k", []byte("1"))
	g.ok(store+"[method]bucket.set", b, "k", []byte("'\x00\xff"))
	g.ok(store+"[method]bucket.set", b, "", []byte{})
	g.want(g.ok(store+"[method]bucket.get", b, "k"), component.Some([]byte("'\x00\xff")))
	g.want(g.ok(store+"[method]bucket.get", b, ""), component.Some([]byte{}))
	g.want(g.ok(store+"[method]bucket.get", other, "k"), component.None)
	g.want(g.ok(store+"[method]bucket.exists", b, "k"), true)
	g.want(g.ok(store+"[method]bucket.exists", other, "k"), false)
	g.want(g.ok(store+"[method]bucket.list-keys", b, component.None), []any{[]any{"", "k"}, component.None})
	g.ok(store+"[method]bucket.delete", b, "k")
	g.ok(store+"[method]bucket.delete", b, "k")
	g.want(g.ok(store+"[method]bucket.list-keys", b, component.None), []any{[]any{""}, component.None})

	g.ok(batch+"set-many", other, []any{[]any{"x", []byte("1")}, []any{"y", []byte("2")}})
	g.want(g.ok(batch+"get-many", other, []any{"y", "z"}),
		[]any{component.Some([]any{"y", []byte("2")}), component.None})
	g.ok(batch+"delete-many", other, []any{"x", "z"})
	g.want(g.ok(store+"[method]bucket.list-keys", other, component.None), []any{[]any{"y"}, component.None})
}

func TestKeyPages(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b := g.ok(store+"open", "a")
	var entries []any
	for i := range 1001 {
		entries = append(entries, []any{fmt.Sprintf("%04d", i), []byte{}})
	}
	g.ok(batch+"set-many", b, entries)
	first := g.ok(store+"[method]bucket.list-keys", b, component.None).([]any)
	g.want(len(first[0].([]any)), 1000)
	g.want(g.ok(store+"[method]bucket.list-keys", b, first[1]), []any{[]any{"1000"}, component.None})
}

func TestAtomics(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b := g.ok(store+"open", "a")
	g.want(g.ok(atomics+"increment", b, "n", int64(5)), int64(5))
	g.want(g.ok(atomics+"increment", b, "n", int64(-7)), int64(-2))
	g.want(g.ok(atomics+"increment", b, "n", uint64(3)), uint64(1))
	g.want(g.ok(store+"[method]bucket.get", b, "n"), component.Some([]byte("1")))
	g.failed(atomics+"increment", b, "n", int64(math.MaxInt64))
	g.ok(store+"[method]bucket.set", b, "text", []byte("1x"))
	g.failed(atomics+"increment", b, "text", int64(1))

	fresh, late := g.ok(atomics+"[static]cas.new", b, "k"), g.ok(atomics+"[static]cas.new", b, "k")
	g.want(g.ok(atomics+"[method]cas.current", fresh), component.None)
	g.ok(atomics+"swap", fresh, []byte("1"))
	failed := g.failed(atomics+"swap", late, []byte("2")).(component.Case)
	g.want(failed.Number, uint32(1))
	g.want(g.ok(atomics+"[method]cas.current", failed.Value), component.Some([]byte("1")))
	g.ok(atomics+"swap", failed.Value, []byte("2"))
	g.want(g.ok(store+"[method]bucket.get", b, "k"), component.Some([]byte("2")))
}

// A tenant's values are its own, and without a grant there are none.
func TestHostileKeyValue(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b := g.ok(store+"open", "a")
	g.ok(store+"[method]bucket.set", b, "k", []byte("secret"))
	first := g.call
	g.call = &broker.Call{Tenant: "other", Spend: first.Spend}
	g.want(g.ok(store+"[method]bucket.get", g.ok(store+"open", "a"), "k"), component.None)
	g.end()
	g.call = first
	failed := g.failed(store+"[method]bucket.set", b, "k", make([]byte, 9<<20)).(component.Case)
	g.want(failed.Number, uint32(2))
	g.ok(store+"open", strings.Repeat("b", 255))
	g.want(g.failed(store+"open", strings.Repeat("b", 256)),
		component.Case{Number: 2, Value: "the name of a bucket has 256 bytes: at most 255 are possible"})

	g = newGuest(t, wasi.Options{})
	g.want(g.failed(store+"open", "a"), component.Case{Number: 1})
	if !strings.Contains(g.log.String(), "permissions.sql") {
		t.Error(g.log.String())
	}
}

// TestHostileBatch: the values that get-many returns are bounded together.
func TestHostileBatch(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b := g.ok(store+"open", "")
	g.ok(store+"[method]bucket.set", b, "k", make([]byte, 1<<20))
	g.ok(batch+"get-many", b, []any{"k", "k", "k", "k"})
	result := g.do(batch+"get-many", b, []any{"k", "k", "k", "k", "k"}).(component.Case)
	failure, _ := result.Value.(component.Case)
	if text, _ := failure.Value.(string); !strings.Contains(text, "more than 4194304 bytes") {
		t.Errorf("result %d with the error %q", result.Number, text)
	}
}

// TestHostileCAS: the keys and values that handles hold are bounded together, until they are dropped or swapped.
func TestHostileCAS(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	b := g.ok(store+"open", "")
	g.ok(store+"[method]bucket.set", b, "k", make([]byte, 1<<20))
	open := func() any { return g.ok(atomics+"[static]cas.new", b, "k") }
	var held []any
	for range 15 { // with their keys they hold 15 bytes more than 15 MiB
		held = append(held, open())
	}
	for _, key := range []string{"k", strings.Repeat("x", 1<<20)} {
		failure := g.failed(atomics+"[static]cas.new", b, key).(component.Case)
		if text, _ := failure.Value.(string); !strings.Contains(text, "more than 16777216 bytes") {
			t.Errorf("%+v", failure)
		}
		drop(held[0])
		drop(held[1])
		g.ok(atomics+"swap", open(), make([]byte, 1<<20))
		held = append(held[2:], open(), open())
	}
}

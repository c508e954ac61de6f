package chat

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// TestLostName: a process that lost its connection to the store is soon considered alive again.
func TestLostName(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	var stores []*store.Store
	for range 2 {
		s := storetest.Open(t, where)
		stores = append(stores, s)
	}
	p, err := join(t.Context(), stores[0])
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	const end = `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	err = stores[1].Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), end)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	free := false
	takenAgain := func() bool {
		release, err := stores[1].LockDead(t.Context(), lockName(p.name()))
		switch {
		case release != nil:
			free = true
			release()
		case err == nil:
			return free
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		}
		return false
	}
	if !testwait.Until(t, takenAgain) {
		t.Fatal("the name is not taken again")
	}
}

// TestStorable: what PostgreSQL refuses is kept as what stands for it.
func TestStorable(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	s, err := drivers.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for text, want := range map[string]string{"日本": "日本", "a\x00b": "a\uFFFDb", "a\xffb": "a\uFFFDb"} {
		var got string
		err := s.View(t.Context(), func(tx *sql.Tx) error {
			return tx.QueryRowContext(t.Context(), "SELECT $1::text", storable(text)).Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("%q is kept as %q, %v", text, got, err)
		}
	}
}

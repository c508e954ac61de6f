package store_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		first, second := storetest.Open(t, where), storetest.Open(t, where)
		if err := first.Migrate(t.Context(), "notes", storetest.Table); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watcher := second.Changes(ctx, "notes")
		seen := 0
		announce := func() {
			err := first.Update(t.Context(), func(tx *sql.Tx) error {
				if err := storetest.AppendNote(t)(tx); err != nil {
					return err
				}
				return first.Announce(t.Context(), tx, "notes")
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for want := range 5 {
			for seen < want {
				storetest.Receive(t, watcher)
				seen = storetest.Count(t, second)
			}
			announce()
		}
		for seen < 5 {
			storetest.Receive(t, watcher)
			seen = storetest.Count(t, second)
		}
		cancel()
		if !testwait.Until(t, func() bool { return store.Topics(second) == 0 }) {
			t.Error("the watcher stays registered")
		}
	})
}

// TestChangesBeginAmongChanges: a new channel starts without delay while changes occur.
func TestChangesBeginAmongChanges(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	<-s.Changes(t.Context(), "notes")
	stop := make(chan struct{})
	var ringing sync.WaitGroup
	ringing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				store.Notify(s, "")
			}
		}
	})
	defer ringing.Wait()
	defer close(stop)
	for range 20_000 {
		ctx, cancel := context.WithCancel(t.Context())
		<-s.Changes(ctx, "notes")
		cancel()
	}
}

// TestChangesOfOthersAreNotHeard: transactions that are rolled back cause no notification. With PostgreSQL neither do
// other topics.
func TestChangesOfOthersAreNotHeard(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, places["postgres"](t))
	watcher := s.Changes(t.Context(), "notes")
	storetest.Receive(t, watcher) // listening has started
	last := s.Changes(t.Context(), "last")
	<-last
	_ = s.Update(t.Context(), func(tx *sql.Tx) error {
		if err := s.Announce(t.Context(), tx, "notes"); err != nil {
			t.Error(err)
		}
		return context.Canceled
	})
	for _, topic := range []string{"other", "last"} {
		if err := s.Update(t.Context(), func(tx *sql.Tx) error {
			return s.Announce(t.Context(),
				tx, topic)
		}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Receive(t, last) // notifications are ordered
	select {
	case <-watcher:
		t.Error("a change is heard that none was")
	default:
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		first, second := storetest.Open(t, where), storetest.Open(t, where)
		for _, s := range []*store.Store{first, second} {
			if err := s.Join(t.Context(), "v1.2.3"); err != nil {
				t.Fatal(err)
			}
		}
		// A replica that died long ago.
		if err := storetest.Exec(t, first, "INSERT INTO replica (id, host, version, started, seen) VALUES ('dead', 'h', 'v', "+
			"1, 1)"); err != nil {
			t.Fatal(err)
		}
		// One that died a few minutes ago.
		if err := first.Update(t.Context(), func(tx *sql.Tx) error {
			now, err := first.Now(t.Context(), tx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(t.Context(), "INSERT INTO replica (id, host, version, started, seen) "+
				"VALUES ('lost', 'h', 'v', 1, $1)", now.Add(-5*time.Minute).UnixMilli())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if lost, err := second.LostReplicas(t.Context()); err != nil || len(lost) != 1 || lost[0].ID != "lost" {
			t.Errorf("lost: %+v, %v", lost, err)
		}
		list, err := storetest.Open(t, where).Replicas(t.Context())
		if err != nil || len(list) != 2 || list[0].Version != "v1.2.3" || list[0].Host == "" || list[0].Seen.IsZero() {
			t.Fatalf("%+v, %v", list, err)
		}
		if id := list[0].ID; id != first.Replica() && id != second.Replica() ||
			first.Replica() == second.Replica() || len(id) != 16 {
			t.Errorf("ids %+v, %s, %s", list, first.Replica(), second.Replica())
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if list, err := second.Replicas(t.Context()); err != nil || len(list) != 1 || list[0].ID != second.Replica() {
			t.Errorf("after one has left: %+v, %v", list, err)
		}
	})
}

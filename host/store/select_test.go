package store_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/store"
)

const selectWords = "SELECT text FROM note ORDER BY id"

func openWithWords(t *testing.T, where string) *store.Store {
	t.Helper()
	s := storetest.Open(t, where)
	if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Exec(t, s, "INSERT INTO note VALUES (1, 'a'), (2, 'b'), (3, 'c')"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestList(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := openWithWords(t, where)
		if words, err := store.List(t.Context(), s, store.Column[string], selectWords); !slices.Equal(words,
			[]string{"a", "b", "c"}) || err != nil {
			t.Errorf("%q, %v", words, err)
		}
		if words, err := store.List(t.Context(), s, store.Column[string], "SELECT text FROM note WHERE id > $1",
			3); words != nil || err != nil {
			t.Errorf("of nothing: %q, %v", words, err)
		}
		broken := errors.New("broken")
		words, err := store.List(t.Context(), s, func(*sql.Rows) (string, error) { return "", broken }, selectWords)
		if words != nil || !errors.Is(err, broken) {
			t.Errorf("a row that cannot be read: %q, %v", words, err)
		}
		if _, err := store.List(t.Context(), s, store.Column[string], "SELECT nothing FROM nowhere"); err == nil {
			t.Error("a wrong query passes")
		}
	})
}

// TestListOverALostConnection: rows that were read before the loss of the connection are not in the list twice.
func TestListOverALostConnection(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	s, other := storetest.Open(t, where), storetest.Open(t, where)
	const query = "SELECT number FROM generate_series(1, 100000) AS number"
	read := 0
	list, err := store.List(t.Context(), s, func(rows *sql.Rows) (int, error) {
		if read++; read == 10 {
			if err := storetest.Exec(t, other, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query = $1",
				query); err != nil {
				t.Error(err)
			}
		}
		return store.Column[int](rows)
	}, query)
	if err != nil || len(list) != 100_000 {
		t.Errorf("%d rows, %v", len(list), err)
	}
	if read == len(list) {
		t.Error("the connection was not lost")
	}
}

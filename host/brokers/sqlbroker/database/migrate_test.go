package database

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

const (
	first  = "CREATE TABLE a (x INTEGER NOT NULL); INSERT INTO a VALUES (1);"
	second = "ALTER TABLE a ADD COLUMN y TEXT"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		migrations []string
		want       string // empty if there is no error
		rows       any
	}{
		"the same": {migrations: []string{first, second}, rows: int64(1)},
		"one more": {migrations: []string{first, second, "INSERT INTO a VALUES (2, 'b')"}, rows: int64(2)},
		"several in one": {migrations: []string{first, second,
			"CREATE TABLE b (z); /* ; */ INSERT INTO a (x) SELECT 3; DROP TABLE b; -- end"}, rows: int64(2)},
		"a trigger": {migrations: []string{first, second, "CREATE TRIGGER t AFTER INSERT ON a BEGIN " +
			"SELECT 1; SELECT 2; END; INSERT INTO a (x) VALUES (2)"}, rows: int64(2)},
		"an older plugin": {migrations: []string{first},
			want: "2 migrations were applied to the plugin's database, and this version of the plugin knows 1",
			rows: int64(1)},
		"an edited one": {migrations: []string{first + " ", second},
			want: "migration 1 of the plugin differs from the applied one", rows: int64(1)},
		"another order": {migrations: []string{second, first},
			want: "migration 1 of the plugin differs from the applied one", rows: int64(1)},
		"an error in the last": {migrations: []string{first, second, "DELETE FROM a",
			"INSERT INTO a VALUES (NULL, 1)"}, want: "migration 4 of the plugin's database fails, so nothing was " +
			"changed: NOT NULL constraint failed: a.x", rows: int64(1)},
		"an error halfway": {migrations: []string{first, second, "DELETE FROM a;\nINSRT INTO a"},
			want: `near "INSRT": syntax error, at line 2, column 1`, rows: int64(1)},
		"a dangling reference": {migrations: []string{first, second, "CREATE TABLE b (a INTEGER REFERENCES p); " +
			"CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO b VALUES (7)"},
			want: "rows of b refer to missing rows of p", rows: int64(1)},
		"one that commits": {migrations: []string{first, second, "DELETE FROM a; COMMIT; nonsense"},
			want: "nothing else", rows: int64(1)},
		"one that attaches": {migrations: []string{first, second, "ATTACH '/tmp/x' AS x"},
			want: "nothing else", rows: int64(1)},
		"one that hides itself": {migrations: []string{first, second, "DELETE FROM hako_migration"},
			want: "nothing else", rows: int64(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, first, second)
			if err := openTest(t, o).Close(); err != nil {
				t.Fatal(err)
			}
			changed := o
			changed.Migrations = test.migrations
			db, err := Open(t.Context(), changed)
			told := (*abi.Error)(nil)
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
				defer db.Close()
			case !errors.As(err, &told) || !strings.Contains(told.Message, test.want):
				t.Errorf("got %v, want %s", err, test.want)
			}
			if db == nil {
				db = openTest(t, o)
			}
			if rows := session(t, db).value(t, "SELECT count(*) FROM a"); rows != test.rows {
				t.Errorf("%v rows, want %v", rows, test.rows)
			}
		})
	}
}

// TestMigrateTogether: processes that start together migrate once.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	o := options(t, first, second)
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			db, err := Open(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := session(t, openTest(t, o)).value(t, "SELECT count(*) FROM a"); n != int64(1) {
		t.Errorf("%v rows: it was migrated %v times", n, n)
	}
}

func TestMigrationRespectsForeignKeys(t *testing.T) {
	t.Parallel()
	o := options(t,
		"CREATE TABLE p (id INTEGER PRIMARY KEY, x); CREATE TABLE c (p INTEGER NOT NULL REFERENCES p); INSERT INTO "+
			"p VALUES (1, 2); INSERT INTO c VALUES (1)",
		// SQLite's documented procedure for schema changes that ALTER TABLE does not support.
		"CREATE TABLE n (id INTEGER PRIMARY KEY, x TEXT NOT NULL); INSERT INTO n SELECT * FROM p; DROP TABLE p; "+
			"ALTER TABLE n RENAME TO p",
	)
	s := session(t, openTest(t, o))
	if n := s.value(t, "SELECT count(*) FROM c JOIN p ON p.id = c.p AND p.x = '2'"); n != int64(1) {
		t.Errorf("%v rows", n)
	}
	wants(t, s.Exec(t.Context(), statement("DELETE FROM p")).Error, abi.CodeConflict, "FOREIGN KEY")
}

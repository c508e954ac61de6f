package console_test

import (
	"bytes"
	"database/sql"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/pipeline"
)

// TestHostileStore: rows that the console did not write neither keep people out nor hide what it has counted.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	const (
		session = `INSERT INTO console_session (id, person, via, source, proof, membership, address, created, seen, expires)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
		traffic = `INSERT INTO console_traffic (span, tool, number, replica, plugin, calls, failures, durations)
			SELECT span, $1, number + CAST($2 AS BIGINT), $3, $4, $5, $6, $7 FROM console_traffic WHERE tool = 'greet'`
	)
	const never = math.MaxInt64
	long := strings.Repeat("x", 8<<20)
	cases := map[string]struct {
		statement string
		args      []any
	}{
		"groups that are not JSON": {session, []any{"a", "aki", "token", "", "", "{", "", never, never, never}},
		"groups of another form": {session, []any{"a", "aki", "token", "", "", `{"a":1}`, "", never, never,
			never}},
		"groups that are numbers": {session, []any{"a", "aki", "token", "", "", `[1,2]`, "", never, never, never}},
		"no groups at all":        {session, []any{"a", "aki", "token", "", "", "", "", never, never, never}},
		"8 MB of groups": {session, []any{"a", "aki", "token", "", "", `["` + long + `"]`, "", never,
			never, never}},
		"a person of 8 MB": {session, []any{"a", long, "token", "", "", "[]", "", never, never, never}},
		"hidden characters": {session, []any{"\u202e", "\u202eaki\n", "token", "", "", "[]", "\x1b[2J", never,
			never, never}},
		"before the beginning": {session, []any{"a", "aki", "token", "", "", "[]", "", math.MinInt64, never,
			never}},
		"an unknown way to log in": {session, []any{"a", "aki", "magic", "x", "y", "[]", "", 0, never, never}},
		"a role that is none": {session, []any{"a", "owner", "token", "owner-token", "", "[]", "", 0, never,
			never}},
		"durations cut off": {traffic, []any{"greet", 0, "other", "plugin", 1, 0, []byte{1, 2}}},
		"no durations":      {traffic, []any{"greet", 0, "other", "plugin", 1, 0, []byte{}}},
		"durations without end": {traffic, []any{"greet", 0, "other", "plugin", 1, 0,
			bytes.Repeat([]byte{0xff}, 40)}},
		"8 MB of durations":           {traffic, []any{"greet", 0, "other", "plugin", 1, 0, []byte(long)}},
		"fewer calls than none":       {traffic, []any{"greet", 0, "other", "plugin", -1000, -1000, make([]byte, 20)}},
		"a step in the far future":    {traffic, []any{"greet", 1 << 40, "other", "plugin", 5, 0, make([]byte, 20)}},
		"a tool of 8 MB":              {traffic, []any{long, 0, "other", "plugin", 1, 0, make([]byte, 20)}},
		"a plugin of 8 MB":            {traffic, []any{"other", 0, "other", long, 1, 0, make([]byte, 20)}},
		"a tool with a hidden letter": {traffic, []any{"gr\u202eet", 0, "other", "plugin", 1, 0, make([]byte, 20)}},
	}
	check := func(t *testing.T, w *world) {
		t.Helper()
		b := w.as(console.Admin)
		for _, path := range []string{"overview", "sessions"} {
			if got := b.get(path); got.status != http.StatusOK || len(got.body) > 1<<20 ||
				strings.ContainsAny(got.body, "\u202e\x1b") {
				t.Errorf("%s: %d, %d bytes: %.300s", path, got.status, len(got.body), got.body)
			}
		}
		var s seriesJSON
		if b.get("series?span=week&tool=greet").into(t, &s); len(s.Points) != 168 {
			t.Errorf("the week has %d points", len(s.Points))
		}
		if calls, _ := s.calls(); calls < 1 {
			t.Errorf("the week has %d calls", calls)
		}
		if got := b.get("series/top?span=week&by=calls"); !strings.Contains(got.body, `"tool":"greet"`) ||
			len(got.body) > 1<<20 {
			t.Errorf("top: %d: %.300s", got.status, got.body)
		}
	}
	for name, test := range cases {
		for _, place := range []string{"directory", "PostgreSQL"} {
			t.Run(name+", "+place, func(t *testing.T) {
				t.Parallel()
				at := filepath.Join(t.TempDir(), "store")
				if place == "PostgreSQL" {
					at = postgrestest.Start(t)
				}
				w := newWorldIn(t, at, nil)
				countOne(t, w)
				if err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.ExecContext(t.Context(), test.statement, test.args...)
					return err
				}); err != nil {
					t.Log("the store refuses:", err)
				}
				check(t, w)
			})
		}
	}
	t.Run("numbers that are texts", func(t *testing.T) {
		t.Parallel()
		w := newWorldIn(t, filepath.Join(t.TempDir(), "store"), nil)
		countOne(t, w)
		for _, statement := range []string{
			`INSERT INTO console_session VALUES ('a', 'aki', 'token', '', '', '[]', '', 'never', 'x', 'y')`,
			`INSERT INTO console_traffic SELECT span, tool, number, 'other', plugin, 'many', x'00', 'x' FROM console_traffic`,
		} {
			if err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), statement)
				return err
			}); err != nil {
				t.Log("the store refuses:", err)
			}
		}
		check(t, w)
	})
	t.Run("100,000 tools", func(t *testing.T) {
		t.Parallel()
		w := newWorldIn(t, postgrestest.Start(t), nil)
		countOne(t, w)
		if err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO console_traffic (span, tool, number, replica, plugin, calls, failures, durations)
				SELECT 'week', 'tool' || n, (SELECT max(number) FROM console_traffic WHERE span = 'week'), 'other', 'p', 0, 0,
					decode(repeat('00', 20), 'hex') FROM generate_series(1, 100000) n`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got := w.as(console.Admin).get("series/top?span=week&by=calls"); got.status != http.StatusOK ||
			len(got.body) > 1<<20 {
			t.Errorf("%d, %d bytes", got.status, len(got.body))
		}
	})
}

// countOne counts a call of the tool greet and saves it.
func countOne(t *testing.T, w *world) {
	t.Helper()
	w.traffic.CallEnded(ended("greet", pipeline.OK, time.Second))
	w.save()
}

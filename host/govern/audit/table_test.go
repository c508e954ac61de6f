package audit_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

// key is 32 bytes in base64.
const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// change runs SQL behind the log's back.
func change(t *testing.T, s *store.Store, statement string, args ...any) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func verifyTable(t *testing.T, s *store.Store) *audit.Report {
	t.Helper()
	report, err := audit.NewTable(s, key).Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Replicas write to one log at the same time, and one of them more than others.
func TestReplicasWriteOneLog(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	var logs []*audit.Log
	for range 3 {
		logs = append(logs, open(t, audit.Options{Store: storetest.Open(t, where), Key: key, Sync: true}))
	}
	const each = 400
	var done sync.WaitGroup
	for i := range 12 {
		done.Go(func() {
			for n := range each {
				if err := logs[i%3].Append(t.Context(), call(fmt.Sprintf("%d/%d", i, n))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	s := storetest.Open(t, where)
	report := verifyTable(t, s)
	if !report.OK() || report.Records < 12*each || report.Checkpoints < 4 || !report.EndChecked || report.First != 1 ||
		report.Last != uint64(report.Records) {
		t.Errorf("%+v", report)
	}
	seen := map[string]bool{}
	place := audit.NewTable(s, "")
	for entry, err := range place.Read(t.Context(), &audit.Query{Type: audit.TypeCall}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[entry.Target.Name] = true
	}
	if len(seen) != 12*each {
		t.Errorf("%d calls are there, want %d", len(seen), 12*each)
	}
	last, err := place.Last(t.Context(), &audit.Query{Type: audit.TypeCall, Name: "0/399"}, 5)
	if err != nil || len(last) != 1 {
		t.Errorf("%v, %v", last, err)
	}
	for _, l := range logs {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if report := verifyTable(t, s); !report.OK() || report.Signed+1 != report.Last {
		t.Errorf("after the end: %+v", report)
	}
}

func TestFollowTable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	l := open(t, audit.Options{Store: s, Key: key})
	appendCalls(t, l, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for entry, err := range audit.NewTable(s, "").Follow(ctx, &audit.Query{}, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; entry.Seq != uint64(n+1) {
			t.Errorf("record %d follows", entry.Seq)
		}
		if n == 3 {
			cancel()
			continue
		}
		appendCalls(t, l, 1)
	}
}

func TestTamperingWithATable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		statements []string
		want       string
	}{
		"nothing":   {},
		"an edit":   {[]string{"UPDATE audit_record SET line = replace(encode(line, 'escape'), 'tool', 'tooL')::bytea WHERE seq = 3"}, "it was changed"},
		"a removal": {[]string{"DELETE FROM audit_record WHERE seq = 3"}, "record 4 follows"},
		"the beginning": {[]string{"DELETE FROM audit_record WHERE seq < 3"},
			"no record says that the earlier ones were removed"},
		"the end": {[]string{"DELETE FROM audit_record WHERE seq > 4"}, "the end was cut off"},
		"the end and the head": {[]string{"DELETE FROM audit_record WHERE seq > 4",
			"UPDATE audit_head SET seq = 4, hash = (SELECT encode(sha256(line), 'hex') FROM audit_record WHERE seq = 4)"},
			"it was not written with the log's key"},
		"the head": {[]string{"DELETE FROM audit_head"}, "it is missing"},
		"another order": {[]string{"UPDATE audit_record SET seq = -3 WHERE seq = 3",
			"UPDATE audit_record SET seq = 3 WHERE seq = 4", "UPDATE audit_record SET seq = 4 WHERE seq = -3"},
			"record 4 follows"},
		"no record": {[]string{"UPDATE audit_record SET line = 'x' WHERE seq = 3"}, "not a record of an audit log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, postgrestest.Start(t))
			l := open(t, audit.Options{Store: s, Key: key})
			appendCalls(t, l, 6)
			if err := l.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			for _, statement := range test.statements {
				change(t, s, statement)
			}
			report := verifyTable(t, s)
			if report.OK() != (test.want == "") || !strings.Contains(fmt.Sprint(report.Problems), test.want) {
				t.Errorf("found %v, want %q", report.Problems, test.want)
			}
			// The log goes on, and what was found is found later too, except for a head that was only removed.
			appendCalls(t, l, 1)
			if report := verifyTable(t, s); report.OK() != (test.want == "") {
				t.Errorf("after a record: %v", report.Problems)
			}
		})
	}
}

// A state from before, put back whole, is seen by who has written since.
func TestRestoredTable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	l := open(t, audit.Options{Store: s, Key: key})
	appendCalls(t, l, 3)
	change(t, s, "CREATE TABLE old_record AS SELECT * FROM audit_record; CREATE TABLE old_head AS SELECT * FROM audit_head")
	appendCalls(t, l, 3)
	change(t, s, "DELETE FROM audit_record; DELETE FROM audit_head; INSERT INTO audit_record SELECT * FROM old_record; INSERT INTO audit_head SELECT * FROM old_head")
	if report := verifyTable(t, s); !report.OK() {
		t.Fatalf("an earlier state is a good log by itself: %v", report.Problems)
	}
	appendCalls(t, l, 1)
	if report := verifyTable(t, s); report.OK() ||
		!strings.Contains(fmt.Sprint(report.Problems), "records up to 6 were missing") {
		t.Errorf("found %v", report.Problems)
	}
}

func TestTableExpires(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := open(t, audit.Options{Store: s, Key: key, Retain: time.Hour, Now: func() time.Time { return now }})
	appendCalls(t, l, 3)
	now = now.Add(2 * time.Hour)
	appendCalls(t, l, 3)
	if err := l.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := verifyTable(t, s)
	if !report.OK() || report.First != 4 {
		t.Errorf("%+v", report)
	}
	last, err := audit.NewTable(s, "").Last(t.Context(), &audit.Query{Type: audit.TypeRemoved, OwnNotes: true}, 1)
	if err != nil || len(last) != 1 || last[0].Removed.Seq != 3 {
		t.Errorf("%v, %v", last, err)
	}
}

// A record that is late, or whose time is wrong, does not take newer ones with it that stand before it.
func TestTableExpiresInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	l := open(t, audit.Options{Store: s, Key: key, Retain: time.Hour})
	appendCalls(t, l, 3)
	if err := l.Append(t.Context(), &audit.Event{Time: time.Now().Add(-1000 * time.Hour), Type: audit.TypeCall}); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
	if err := l.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := verifyTable(t, s); !report.OK() || report.First != 1 || report.Records != 5 {
		t.Errorf("%+v", report)
	}
}

// However much is too old, others take their turns meanwhile.
func TestTableExpiresInParts(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := open(t, audit.Options{Store: s, Key: key, Retain: time.Hour, Now: func() time.Time { return now }})
	const all = 5100
	var done sync.WaitGroup
	for range 100 {
		done.Go(func() {
			for range all / 100 {
				if err := l.Append(t.Context(), call("many")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	now = now.Add(2 * time.Hour)
	if err := l.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	removed, err := audit.NewTable(s, "").Last(t.Context(), &audit.Query{Type: audit.TypeRemoved, OwnNotes: true}, 10)
	if err != nil || len(removed) != 2 {
		t.Errorf("removed in %d parts, %v", len(removed), err)
	}
	if report := verifyTable(t, s); !report.OK() || report.First < all || report.Records > 10 {
		t.Errorf("%+v", report)
	}
}

// Records have the time of the database, whatever the clock of the machine says that wrote them.
func TestTableGoesByTheClockOfTheStore(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	began := time.Now()
	l := open(t, audit.Options{Store: s, Key: key, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	if err := l.Append(t.Context(), &audit.Event{Time: began, Type: audit.TypeCall}); err != nil {
		t.Fatal(err)
	}
	last, err := audit.NewTable(s, "").Last(t.Context(), &audit.Query{Type: audit.TypeCall}, 1)
	if err != nil || len(last) != 1 || last[0].Time.Sub(began.Add(-time.Hour)).Abs() > 30*time.Minute {
		t.Errorf("%v, %v", last, err)
	}
}

func TestKeyOfATable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	appendCalls(t, open(t, audit.Options{Store: s, Key: key}), 1)
	for name, test := range map[string]struct{ key, want string }{
		"none":    {"", "set audit.key"},
		"no key":  {"c2VjcmV0", "is not 32 bytes in base64"},
		"another": {strings.Replace(key, "M", "N", 1), "started with another key"},
	} {
		l, err := audit.Open(&audit.Options{Store: s, Key: test.key})
		if err == nil {
			t.Fatal(name, l.Close())
		}
		if !strings.Contains(err.Error(), test.want) || test.key != "" && strings.Contains(err.Error(), test.key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What waits for its turn and is given up is not recorded.
func TestTableGivenUp(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	s, other := storetest.Open(t, where), storetest.Open(t, where)
	l := open(t, audit.Options{Store: s, Key: key})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	err := other.UpdateInTurn(t.Context(), "audit", func(tx *sql.Tx) error {
		done.Go(func() { appendCalls(t, l, 1) })
		for waiting := 0; waiting == 0; { // in the database
			const query = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
			if err := tx.QueryRowContext(t.Context(), query).Scan(&waiting); err != nil {
				return err
			}
		}
		for l.Stats().Failures == 0 {
			short, end := context.WithTimeout(ctx, 20*time.Millisecond)
			if err := l.Append(short, call("given up")); err == nil {
				t.Error("recorded out of turn")
			}
			end()
		}
		return nil
	})
	cancel()
	done.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if last, err := audit.NewTable(s, "").Last(t.Context(), &audit.Query{}, 10); err != nil || len(last) != 1 {
		text, _ := json.Marshal(last)
		t.Errorf("%s, %v", text, err)
	}
}

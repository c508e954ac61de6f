package approval_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// desks returns the desks of two replicas, and a function that changes their store.
func desks(t *testing.T) (a, b *approval.Queue, tamper func(statement string, args ...any)) {
	t.Helper()
	where := postgrestest.Start(t)
	open := func() (*approval.Queue, *store.Store) {
		s, err := drivers.Open(t.Context(), where, &drivers.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		d, err := approval.New(t.Context(), s, &approval.Options{Operators: true, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return d, s
	}
	a, s := open()
	b, _ = open()
	return a, b, func(statement string, args ...any) {
		t.Helper()
		err := s.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), statement, args...)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// asks asks about a call, calls waits when the question is in the store, and returns the error of Ask.
func asks(t *testing.T, d *approval.Queue, q *approval.Question, waits func(id string)) error {
	t.Helper()
	told := make(chan string, 1)
	stop := d.Watch(always, func(q *approval.Question) { told <- q.ID })
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := d.Ask(testwait.Context(t), q, approval.Prompter{})
		ended <- err
	}()
	waits(<-told)
	return <-ended
}

// TestHostileStore checks that changed, moved or copied rows neither turn a yes into one for another call nor hide
// other questions.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	const harmless = `{"command":"ls"}`
	operator := approval.Person{User: "op", Operator: true}
	// Each case tries to turn the yes to a harmless question into one to a waiting harmful call.
	for name, statement := range map[string]string{
		"the harmless question in the row of the other": `UPDATE approval SET question = (SELECT question FROM approval WHERE id = $2) WHERE id = $1`,
		"with its binding": `UPDATE approval SET (question, binding) = (SELECT question, binding FROM approval WHERE id = $2) WHERE id = $1`,
		"with its ID in the text": `UPDATE approval SET question = replace((SELECT question FROM approval WHERE id = $2), $2, $1),
			binding = (SELECT binding FROM approval WHERE id = $2) WHERE id = $1`,
		"only its arguments":      `UPDATE approval SET question = replace(question, 'rm -rf', 'ls') WHERE id = $1 AND $2 <> ''`,
		"only its detail":         `UPDATE approval SET question = replace(question, '"rule"', '"detail":"a dry run","rule"') WHERE id = $1 AND $2 <> ''`,
		"only its tool":           `UPDATE approval SET question = replace(question, 'shell_exec', 'file_read') WHERE id = $1 AND $2 <> ''`,
		"only its caller":         `UPDATE approval SET question = replace(question, '"aki"', '"op"') WHERE id = $1 AND $2 <> ''`,
		"only its tenant":         `UPDATE approval SET tenant = 'other' WHERE id = $1 AND $2 <> ''`,
		"the rows change places":  `UPDATE approval SET id = 'third' WHERE id = $1; UPDATE approval SET id = $1 WHERE id = $2; UPDATE approval SET id = $2 WHERE id = 'third'`,
		"a question that is none": `UPDATE approval SET question = '{' WHERE id = $1 AND $2 <> ''`,
		"a question that is null": `UPDATE approval SET question = 'null' WHERE id = $1 AND $2 <> ''`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, tamper := desks(t)
			err := asks(t, a, question(harmless), func(other string) {
				err := asks(t, b, question(`{"command":"rm -rf"}`), func(id string) {
					for statement := range strings.SplitSeq(statement, ";") {
						statement = strings.NewReplacer("$1", "'"+id+"'", "$2", "'"+other+"'").Replace(statement)
						tamper(statement)
					}
					// A person sees the call's own question, or cannot answer it.
					if q, err := a.Question(t.Context(), id); err == nil &&
						strings.Contains(string(q.Arguments), "rm -rf") {
						t.Error("the case changes nothing")
					}
					if err := a.Answer(t.Context(), id, approval.Answer{Yes: true, By: operator}); err == nil {
						t.Log("the yes was taken")
					}
					_ = b.Answer(t.Context(), id, approval.Answer{By: operator})
					tamper("UPDATE approval SET state = 'expired' WHERE state = 'waiting' AND id = '" + id + "'")
				})
				if err == nil {
					t.Error("the harmful call was agreed to")
				}
				tamper("UPDATE approval SET state = 'expired' WHERE state = 'waiting'")
			})
			if err == nil {
				t.Error("nobody has agreed to the harmless one")
			}
		})
	}
	// Each case is a row beside a question that people must still see.
	for name, statement := range map[string]string{
		"a row that is no JSON":          `INSERT INTO approval VALUES ('x', 'b', 'acme', '{', 'waiting', '', 9223372036854775807, 0)`,
		"a row of a newer version":       `INSERT INTO approval VALUES ('x', 'b', 'acme', '{"id":"x","caller":7}', 'waiting', '', 9223372036854775807, 0)`,
		"a state of a newer version":     `INSERT INTO approval VALUES ('x', 'b', 'acme', '{"id":"x"}', 'deferred', '', 9223372036854775807, 0)`,
		"a question of 16 MiB":           `INSERT INTO approval VALUES ('x', 'b', 'acme', repeat('x', 16777216), 'waiting', '', 9223372036854775807, 0)`,
		"an ID that is SQL":              `INSERT INTO approval VALUES ('''); DROP TABLE approval; --', 'b', 'acme', '{}', 'waiting', '', 9223372036854775807, 0)`,
		"10,000 rows":                    `INSERT INTO approval SELECT 'x' || n, 'b', 'acme', '{}', 'waiting', '', 9223372036854775807, 0 FROM generate_series(1, 10000) n`,
		"a copy under another ID":        `INSERT INTO approval SELECT 'x', binding, tenant, question, state, answered_by, expires, valid_until FROM approval`,
		"a copy for another tenant":      `INSERT INTO approval SELECT 'x', binding, 'other', question, state, answered_by, expires, valid_until FROM approval`,
		"somebody who seems to look":     `INSERT INTO approval_watch VALUES ('x', 9223372036854775807)`,
		"a yes for all that is in force": `INSERT INTO approval SELECT 'x', binding, tenant, question, 'used', 'op', expires, 9223372036854775807 FROM approval`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, tamper := desks(t)
			err := asks(t, a, question(harmless), func(id string) {
				tamper(statement)
				for _, tenant := range []*string{nil, new("acme")} {
					if list, err := b.Waiting(t.Context(), tenant); err != nil || len(list) != 1 || list[0].ID != id {
						t.Errorf("%d questions are seen, %v", len(list), err)
					}
				}
				if list, err := b.Waiting(t.Context(), new("other")); err != nil || len(list) != 0 {
					t.Errorf("another tenant sees %d questions, %v", len(list), err)
				}
				if err := b.Answer(t.Context(), id, approval.Answer{By: operator}); err != nil {
					t.Error(err)
				}
			})
			var refused *approval.RefusedError
			if !errors.As(err, &refused) || refused.By != "op" {
				t.Errorf("got %v", err)
			}
		})
	}
}

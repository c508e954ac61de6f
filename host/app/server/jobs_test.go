package server

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/app/background"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/audit"
)

// tally counts how often jobs have run, in all processes together.
type tally struct {
	mu   sync.Mutex // guards runs
	runs map[string]int
	all  chan map[string]int // receives runs when each has run
}

// count makes jobs that are counted when they have run.
func (c *tally) count(jobs []background.Job) (counted []background.Job) {
	for _, j := range jobs {
		run := j.Run
		j.Run = func(ctx context.Context) error {
			err := run(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.runs[j.Name]++; c.runs[j.Name] == 1 && len(c.runs) == len(jobs) {
				c.all <- maps.Clone(c.runs)
			}
			return err
		}
		counted = append(counted, j)
	}
	return counted
}

// old puts something too old into the tables of everything that keeps what it is told only for so long.
func old(t *testing.T, g *Governance) {
	t.Helper()
	if err := chat.Forget(t.Context(), g.Store, 0); err != nil { // makes the tables
		t.Fatal(err)
	}
	if err := slackbot.Forget(t.Context(), g.Store); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{time.Now().AddDate(-1, 0, 0), time.Now()} { // the last record of a log stays
		if err := g.audit.Append(t.Context(), &audit.Event{Type: audit.TypeOperator, Time: at}); err != nil {
			t.Fatal(err)
		}
	}
	err := g.Store.Update(t.Context(), func(tx *sql.Tx) error {
		for _, row := range []string{
			`INSERT INTO approval (id, binding, tenant, question, state, answered_by, expires, valid_until) VALUES ('old', '', '', '{}', 'expired', '', 1, 0)`,
			`INSERT INTO chat_conversation (tenant, id, owner, title, locale, began, used, last, summary, summarised, tokens, cost, running)
				VALUES ('', 'old', '', '', '', 1, 1, 1, '', 0, 0, 0, '')`,
			`INSERT INTO slack_event (id, seen) VALUES ('old', 1)`,
			`INSERT INTO quota_use (day, owner, nanoseconds) VALUES ('2020-01-01', 'old', 1)`,
			`INSERT INTO replica (id, host, version, started, seen) VALUES ('old', '', '', 1, 1)`,
		} {
			if _, err := tx.ExecContext(t.Context(), row); err != nil {
				return fmt.Errorf("%s: %w", row, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// left counts what is too old and still there.
func left(t *testing.T, g *Governance) (n int) {
	t.Helper()
	count := `SELECT (SELECT COUNT(*) FROM approval) + (SELECT COUNT(*) FROM chat_conversation) + (SELECT COUNT(*) FROM slack_event) +
		(SELECT COUNT(*) FROM quota_use) + (SELECT COUNT(*) FROM replica WHERE id = 'old')`
	if g.Store.Shared() {
		count += fmt.Sprintf(" + (SELECT COUNT(*) FROM audit_record WHERE time < %d)",
			time.Now().AddDate(0, -6, 0).UnixMilli())
	}
	err := g.Store.View(t.Context(), func(tx *sql.Tx) error { return tx.QueryRowContext(t.Context(), count).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRetention: of three processes over a store one deletes what is too old, once.
func TestRetention(t *testing.T) {
	t.Parallel()
	shared := func(t *testing.T) string {
		key := filepath.Join(t.TempDir(), "audit.key")
		writeFile(t, key, []byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"))
		return fmt.Sprintf("store: %q\naudit: {key: {file: %q}}\n", postgrestest.Start(t), key)
	}
	for name, storeIn := range map[string]func(*testing.T) string{
		"directory":  func(*testing.T) string { return "" },
		"PostgreSQL": shared,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := loadConfig(t, t.TempDir(), "chat: {retain: 720h}\n"+storeIn(t))
			c.Audit.Retain = 24 * time.Hour
			var processes []*Governance
			for range 3 {
				g, err := OpenGovernance(t.Context(), c, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = g.Close() })
				processes = append(processes, g)
			}
			old(t, processes[0])
			runs := &tally{runs: map[string]int{}, all: make(chan map[string]int, 1)}
			var runners []*background.Runner
			for _, g := range processes {
				if g.Store.Shared() {
					if err := g.Store.Join(t.Context(), ""); err != nil {
						t.Fatal(err)
					}
				}
				jobs := runs.count(retentionJobs(g, func() *config.Config { return c }))
				runner, err := background.Start(t.Context(), g.Store, slog.New(slog.DiscardHandler), jobs...)
				if err != nil {
					t.Fatal(err)
				}
				runners = append(runners, runner)
			}
			counted := <-runs.all // before a process leaves and another one starts the jobs again
			for _, runner := range runners {
				runner.Close()
			}
			if n := left(t, processes[1]); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			for name, n := range counted {
				if n != 1 {
					t.Errorf("%s has run %d times", name, n)
				}
			}
		})
	}
}

// TestSessionJobFollowsTheConfiguration: sessions are kept for as long as the configuration in force says, not the one
// at the start.
func TestSessionJobFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	sessions, err := sessionstore.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(),
			`INSERT INTO mcp_session (id, owner, opening, level, used) VALUES ('s', '', '{}', '', $1)`,
			s.Time().Add(-45*time.Minute).UnixMilli())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := new(config.Config)
	job := sessionJob(sessions, func() *config.Config { return c })
	for _, test := range []struct {
		idle time.Duration
		left int
	}{{time.Hour, 1}, {30 * time.Minute, 0}} {
		c = new(config.Config)
		c.MCP.Limits.SessionIdle = test.idle
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := sessions.List(t.Context(), 100); err != nil || len(all) != test.left {
			t.Errorf("with %s: %d sessions, %v, want %d", test.idle, len(all), err, test.left)
		}
	}
}

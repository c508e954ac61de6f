package background

import (
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/store/postgres"
)

// TestHostileQueue: rows of the queue that hako did not write neither stop its jobs, nor run them without end.
func TestHostileQueue(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO river_job (kind, args, state, queue, priority, max_attempts, attempt, scheduled_at,
		attempted_at, attempted_by, metadata) `
	available := func(kindAndArgs string) string {
		return insert + `VALUES (` + kindAndArgs + `, 'available', 'default', 1, 1, 0, now(), NULL, NULL, '{}')`
	}
	for group, statements := range map[string]map[string]string{
		"rows": {
			"another kind":              available(`'evil', '{}'`),
			"arguments that are a text": available(`'hako', '"count"'`),
			"arguments that are a list": available(`'hako', '[1]'`),
			"arguments that are null":   available(`'hako', 'null'`),
			"a job that is a number":    available(`'hako', '{"job":1e300}'`),
			"an unknown job":            available(`'hako', '{"job":"\u202eevil"}'`),
			"arguments of 8 MB":         available(`'hako', jsonb_build_object('job', repeat('x', 8000000))`),
			"metadata of 8 MB": insert + `VALUES ('hako', '{"job":"count"}',
				'available', 'default', 1, 1, 0, now(), NULL, NULL, jsonb_build_object('a', repeat('x', 8000000)))`,
			"attempts without end": insert + `VALUES ('hako', '{"job":"none"}',
				'available', 'default', 1, 32767, 0, now(), NULL, NULL, '{}')`,
			"a queue of another name": insert + `VALUES ('hako', '{"job":"count"}',
				'available', 'evil', 1, 1, 0, now(), NULL, NULL, '{}')`,
		},
		"floods": {
			"10,000 of another kind": insert + `SELECT 'evil', '{}', 'available', 'default', 1, 1, 0, now(), NULL, NULL, '{}'
				FROM generate_series(1, 10000)`,
			"10,000 of the job": insert + `SELECT 'hako', '{"job":"count"}',
				'available', 'default', 1, 1, 0, now(), NULL, NULL, '{}'
				FROM generate_series(1, 10000)`,
		},
		"obstacles": {
			"running at another for ever": insert + `VALUES ('hako', '{"job":"count"}',
				'running', 'default', 1, 1, 1, now(), now() + interval '1000 years', '{other}', '{}')`,
			"waits for a thousand years": insert + `VALUES ('hako', '{"job":"count"}',
				'scheduled', 'default', 1, 1, 0, now() + interval '1000 years', NULL, NULL, '{}')`,
			"takes the place of the job":  `UPDATE river_job SET state = 'scheduled', finalized_at = NULL, scheduled_at = now() + interval '1000 years' WHERE kind = 'hako'`,
			"a leader that never expires": `UPDATE river_leader SET leader_id = 'other', expires_at = now() + interval '1000 years'`,
			"a paused queue":              `UPDATE river_queue SET paused_at = now()`,
		},
		"notifications": {
			"a notification":              `SELECT pg_notify('river_insert', repeat('x', 7000))`,
			"notifications that are JSON": `SELECT pg_notify('river_leadership', '{"action":"resigned","leader_id":"*","name":"default"}')`,
			"an order to stop, announced": `SELECT pg_notify('river_control', '{"action":"cancel","job_id":1,"queue":"default"}')`,
		},
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			first := start(t, where, counting)
			await(t, func() bool { return first.runs.Load() > 0 })
			pool, err := postgres.Pool(first.store)
			if err != nil {
				t.Fatal(err)
			}
			for name, statement := range statements {
				t.Run(name, func(t *testing.T) {
					if _, err := pool.Exec(t.Context(), statement); err != nil {
						t.Log("the database refuses:", err)
					}
				})
			}
			first.end()
			begin := time.Now()
			next := start(t, where, counting)
			await(t, func() bool { return next.runs.Load() >= 3 })
			if n, took := next.runs.Load(), time.Since(begin); n > 2*int64(took/time.Second)+4 {
				t.Errorf("%d runs within %v", n, took)
			}
		})
	}
}

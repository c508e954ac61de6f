package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/postgres"
	"github.com/hako-run/hako/internal/demote"
)

const (
	// rescueTime is the age at which a running job is considered lost.
	rescueTime = 2 * time.Minute
	// retention is the time for which the queue keeps completed jobs.
	retention = time.Hour
	// pollTime is the interval at which a replica polls, in case it missed a notification.
	pollTime = 5 * time.Second
	// stopTime bounds the wait for running jobs at shutdown.
	stopTime = 5 * time.Second
)

// due is the river job for a Job that is due.
type due struct {
	Job string `json:"job"`
}

// Kind implements river.JobArgs.
func (due) Kind() string { return "hako" }

// startQueue runs the jobs with river.
func startQueue(ctx context.Context, s *store.Store, logger *slog.Logger, jobs []Job) (stop func(), err error) {
	pool, err := postgres.Pool(s)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	if err := migrate(ctx, s, func(ctx context.Context) error {
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		for _, statement := range repairs {
			if _, err := pool.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(worker(s, jobs, logger)))
	client, err := river.NewClient(driver, &river.Config{
		ID: "hako " + s.Replica(), Logger: demote.Logger(logger), Workers: workers, PeriodicJobs: periodic(jobs),
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2, FetchPollInterval: pollTime}},
		JobTimeout: jobTime + time.Second, RescueStuckJobsAfter: rescueTime, MaxAttempts: 1,
		CompletedJobRetentionPeriod: retention, CancelledJobRetentionPeriod: retention,
		DiscardedJobRetentionPeriod: 24 * time.Hour,
		Test:                        river.TestConfig{Time: clock{s}},
	})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := client.Start(running); err != nil {
		cancel()
		return nil, err
	}
	return sync.OnceFunc(func() {
		defer cancel()
		soon, end := context.WithTimeout(context.Background(), stopTime)
		defer end()
		_ = client.StopAndCancel(soon) // another replica repeats jobs that do not end in time
	}), nil
}

// repairs remove rows that hako never writes and that would keep its jobs from running: a leader that does not expire,
// a paused queue, jobs that wait for a later time, which count as the one of their name, and jobs of other programs.
var repairs = []string{
	`DELETE FROM river_leader WHERE expires_at > now() + interval '1 hour'`,
	`UPDATE river_queue SET paused_at = NULL WHERE paused_at IS NOT NULL`,
	`DELETE FROM river_job WHERE kind <> 'hako' OR scheduled_at > now() + interval '1 hour'`,
}

// clock is the store's clock, so that a wrong clock of one machine does not matter. River offers the setting for tests
// only, but uses it for all scheduling.
type clock struct{ *store.Store }

// Now implements rivertype.TimeGenerator.
func (c clock) Now() time.Time { return c.Time() }

// NowOrNil implements rivertype.TimeGenerator. Nil is the database's own clock.
func (clock) NowOrNil() *time.Time { return nil }

var _ rivertype.TimeGenerator = clock{}

// migrate runs the queue's migration in one replica at a time.
func migrate(ctx context.Context, s *store.Store, do func(context.Context) error) error {
	held, release, err := s.Lock(ctx, "background migration")
	if err != nil {
		return err
	}
	defer release()
	return do(held)
}

// worker runs due jobs under a lock, because the queue may consider a running job lost.
func worker(s *store.Store, jobs []Job, logger *slog.Logger) func(context.Context, *river.Job[due]) error {
	known := map[string]*Job{}
	for _, j := range jobs {
		known[j.Name] = &j
	}
	var last sync.Map // by name, when a job last began here
	return func(ctx context.Context, d *river.Job[due]) error {
		j := known[d.Args.Job]
		if j == nil {
			// The other version adds the job again.
			return river.JobCancel(fmt.Errorf("another version of hako has the job %q", d.Args.Job))
		}
		held, release, err := s.Lock(ended(ctx), "background job "+j.Name)
		if errors.Is(err, store.ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		defer release()
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(held, cancel)()
		if began, ok := last.Load(j.Name); ok && time.Since(began.(time.Time)) < j.Every/2 {
			return nil // a row too many
		}
		last.Store(j.Name, time.Now())
		return j.run(running, logger)
	}
}

// ended returns a cancelled context, with which Lock makes a single attempt.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// periodic returns the jobs for the leader to add. A job is not added while it waits or runs.
func periodic(jobs []Job) (list []*river.PeriodicJob) {
	unique := river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
		rivertype.JobStateScheduled,
	}}
	for _, j := range jobs {
		list = append(list, river.NewPeriodicJob(river.PeriodicInterval(j.Every),
			func() (river.JobArgs, *river.InsertOpts) { return due{j.Name}, &river.InsertOpts{UniqueOpts: unique} },
			&river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
	}
	return list
}

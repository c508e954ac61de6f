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

	"github.com/hako-run/hako/host/internal/demote"
	"github.com/hako-run/hako/host/store"
)

const (
	// rescueTime is after how long a job is taken for lost that its replica has not ended.
	rescueTime = 2 * time.Minute
	// keepTime is how long the queue keeps what is done.
	keepTime = time.Hour
	// pollTime is how often a replica looks for jobs that it was not told of.
	pollTime = 5 * time.Second
	// stopTime is how long a replica that stops waits for the jobs that it runs.
	stopTime = 5 * time.Second
)

// due says that a job is.
type due struct {
	Job string `json:"job"`
}

// Kind implements river.JobArgs.
func (due) Kind() string { return "hako" }

// startQueue runs the jobs with river.
func startQueue(ctx context.Context, s *store.Store, logger *slog.Logger, jobs []Job) (stop func(), err error) {
	pool, err := s.Pool()
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	if err := migrate(ctx, s, func(ctx context.Context) error {
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	}); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(worker(s, jobs, logger)))
	client, err := river.NewClient(driver, &river.Config{
		ID: "hako " + s.Replica(), Logger: demote.Logger(logger), Workers: workers, PeriodicJobs: periodic(jobs),
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2, FetchPollInterval: pollTime}},
		JobTimeout: jobTime + time.Second, RescueStuckJobsAfter: rescueTime, MaxAttempts: 1,
		CompletedJobRetentionPeriod: keepTime, CancelledJobRetentionPeriod: keepTime, DiscardedJobRetentionPeriod: 24 * time.Hour,
		Test: river.TestConfig{Time: clock{s}},
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
		_ = client.StopAndCancel(soon) // what does not end in time is done again by another replica
	}), nil
}

// clock is the store's, so that jobs are due when they are due, also while the clock of the machine that adds them is wrong. River takes
// another clock as a setting for tests only, but does with it what is wanted here.
type clock struct{ *store.Store }

// Now implements rivertype.TimeGenerator.
func (c clock) Now() time.Time { return c.Time() }

// NowOrNil implements rivertype.TimeGenerator. Nil is the database's own clock.
func (clock) NowOrNil() *time.Time { return nil }

var _ rivertype.TimeGenerator = clock{}

// migrate lets one replica at a time make the queue's tables.
func migrate(ctx context.Context, s *store.Store, do func(context.Context) error) error {
	held, release, err := s.Lock(ctx, "background migration")
	if err != nil {
		return err
	}
	defer release()
	return do(held)
}

// worker runs what is due, unless another replica does: the queue may take a job for lost that is not.
func worker(s *store.Store, jobs []Job, logger *slog.Logger) func(context.Context, *river.Job[due]) error {
	known := map[string]*Job{}
	for _, j := range jobs {
		known[j.Name] = &j
	}
	return func(ctx context.Context, d *river.Job[due]) error {
		j := known[d.Args.Job]
		if j == nil {
			return river.JobCancel(fmt.Errorf("another version of hako has the job %q", d.Args.Job)) // and adds it again
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
		return j.run(running, logger)
	}
}

// ended is ctx, but has ended: whoever takes a lock with it makes one attempt.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// periodic are the jobs for the leader to add. None is added while it waits or runs.
func periodic(jobs []Job) (list []*river.PeriodicJob) {
	unique := river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}
	for _, j := range jobs {
		list = append(list, river.NewPeriodicJob(river.PeriodicInterval(j.Every),
			func() (river.JobArgs, *river.InsertOpts) { return due{j.Name}, &river.InsertOpts{UniqueOpts: unique} },
			&river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
	}
	return list
}

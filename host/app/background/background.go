// Package background runs periodic jobs in one of the processes that share a store.
//
// Start takes the jobs and returns a Runner, which Close stops. With PostgreSQL the jobs are queued by river: its
// leader adds a job when it is due, any replica runs it, and a new leader is elected within 20 seconds. With a
// directory the process that holds a lock runs all jobs, and another one takes over within 3 seconds. A job does not
// overlap with itself, except when a process is wrongly considered dead, and it is run again if a process dies during
// it: so it must be idempotent.
package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Job is a periodic job.
type Job struct {
	// Name is unique and stable across versions.
	Name string
	// Every is the interval, at least a second.
	Every time.Duration
	// Run runs the job, for at most a minute. An error is logged; the next run is at the usual time.
	Run func(context.Context) error
}

const (
	// jobTime bounds one run.
	jobTime = time.Minute
	// takeOver is the interval at which a process tries to acquire the lock of a directory.
	takeOver = 3 * time.Second
)

// Runner runs jobs until Close.
type Runner struct {
	close func()
}

// Start runs jobs unless another process does, the first time soon. All processes that share the store call it with the
// same jobs. It fails for an invalid job or if the queue's tables cannot be created. The caller closes the Runner
// before the store. A nil logger discards.
func Start(ctx context.Context, s *store.Store, logger *slog.Logger, jobs ...Job) (*Runner, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	names := map[string]bool{}
	for _, j := range jobs {
		if j.Name == "" || names[j.Name] || j.Every < time.Second || j.Run == nil {
			return nil, fmt.Errorf("background: the job %q is invalid: "+
				"it needs a unique name, a function to run, and an interval of at least a second", j.Name)
		}
		names[j.Name] = true
	}
	start := startLocal
	if s.Shared() {
		start = startQueue
	}
	stop, err := start(ctx, s, logger, jobs)
	if err != nil {
		return nil, fmt.Errorf("background jobs: %w", err)
	}
	return &Runner{stop}, nil
}

// Close cancels running jobs and waits for them, with PostgreSQL for up to 5 seconds. It may be called twice.
func (r *Runner) Close() { r.close() }

// run runs a job once.
func (j *Job) run(ctx context.Context, logger *slog.Logger) error {
	inTime, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	begin := time.Now()
	err := j.Run(inTime)
	switch {
	case err == nil:
		logger.Debug("background job", "job", j.Name, "duration", time.Since(begin))
	case ctx.Err() == nil && !errors.Is(err, context.Canceled):
		logger.Warn("a background job failed, and is tried again when it is due", "job", j.Name, "err", err)
	}
	return err
}
